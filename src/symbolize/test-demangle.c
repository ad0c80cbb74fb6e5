/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/demangle.h"
#include "symbolize/names.h"

#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "unit.h"

TEST(mangled_names_become_readable)
{
	static const struct {
		const char *mangled;
		const char *readable; /* NULL: shown as it is */
	} cases[] = {
		{"_ZN3foo3barEi", "foo::bar(int)"},
		{"_ZNSt6vectorIiSaIiEE9push_backERKi",
		 "std::vector<int, std::allocator<int> >::push_back(int const&)"},
		{"_ZN3FooC4Ev", "Foo::Foo()"},
		{"_ZN12_GLOBAL__N_13fooEv", "(anonymous namespace)::foo()"},
		{"_ZN3foo3barEi.isra.0", "foo::bar(int) [clone .isra.0]"},
		{"_ZN3foo3barEi.cold", "foo::bar(int) [clone .cold]"},
		{"_ZN3foo3barEi.constprop.0.isra.1.cold",
		 "foo::bar(int) [clone .constprop.0] [clone .isra.1] [clone .cold]"},
		{"_ZN3foo3barEi.part.12", "foo::bar(int) [clone .part.12]"},
		{"_ZN3foo3barEi.llvm.1234567890", "foo::bar(int)"},
		{"_ZN3foo3barEi.__uniq.77.llvm.1234567890", "foo::bar(int)"},
		{"_ZN3foo3barEi.lto_priv.0", "foo::bar(int) [clone .lto_priv.0]"},
		{"_ZN3foo3barEi.12", "foo::bar(int) [clone .12]"},
		{"_ZZ4mainENKUlvE_clEv.constprop.0",
		 "main::{lambda()#1}::operator()() const [clone .constprop.0]"},
		{"___Z4mainv_block_invoke", "main() [block]"},
		{"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"},
		{"_ZN60_$LT$alloc..string..String$u20$as$u20$core..fmt..Display$GT$3fmt"
		 "17h0123456789abcdefE",
		 "<alloc::string::String as core::fmt::Display>::fmt"},
		{"_ZN3std2io5Write9write_all17h0123456789abcdefE.llvm.987",
		 "std::io::Write::write_all"},
		{"_RNvCs1234_7mycrate3foo", "mycrate::foo"},
		{"_RINvNtC3std3mem8align_ofdE", "std::mem::align_of::<f64>"},
		{"_D3foo3barFiZv", "foo.bar(int)"},
		{"_Dmain", "D main"},
		{"main", NULL},
		{"foo.cold", NULL},
		{"_Z", NULL},
		{"_Zeta", NULL},
		{"_Read", NULL},
		{"_Dynamic", NULL},
		{"__libc_start_main", NULL},
		{"___", NULL},
		{"", NULL},
		{".isra.0", NULL},
	};

	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		_cleanup_free_ char *readable = NULL;
		ASSERT_OK(demangle_name(cases[i].mangled, &readable));
		if (cases[i].readable)
			ASSERT_STREQ(readable ? readable : cases[i].mangled, cases[i].readable);
		else if (readable)
			fail_msg("%s became %s", cases[i].mangled, readable);
	}
}

/* f<pair<pair<…>, pair<…>>> whose text doubles with each of LEVELS. */
static char *doubling_name(int levels)
{
	struct strbuf name = STRBUF_INIT;

	ASSERT_OK(strbuf_addf(&name, "_Z1fI1PIiiE"));
	for (int i = 0; i < levels; i++) {
		// S_ is P, S0_ the first P<…>; each further level is the next substitution.
		char digit = (char)(i < 10 ? '0' + i : 'A' + i - 10);
		ASSERT_OK(strbuf_addf(&name, "S0_IS%c_S%c_E", i ? digit : '1', i ? digit : '1'));
	}
	ASSERT_OK(strbuf_addf(&name, "EvT_"));
	return name.text;
}

TEST(a_short_name_that_stands_for_gigabytes_is_shown_as_it_is)
{
	_cleanup_free_ char *bomb = doubling_name(30);
	_cleanup_free_ char *small = doubling_name(3);
	_cleanup_free_ char *readable = NULL;
	_cleanup_free_ char *exploded = NULL;

	ASSERT_OK(demangle_name(small, &readable));
	ASSERT_TRUE(readable != NULL); // the form is right
	ASSERT_OK(demangle_name(bomb, &exploded));
	ASSERT_TRUE(exploded == NULL);
}

TEST(overlong_and_deeply_nested_names_are_shown_as_they_are)
{
	enum { LENGTH = 200000 };
	static const char *const parts[] = {"P", "I", "N", "S_", "L", "X", "T_", "Q", "."};
	_cleanup_free_ char *name = malloc(LENGTH + 3);

	for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
		for (size_t length = 60000; length <= LENGTH; length += LENGTH - 60000) {
			_cleanup_free_ char *readable = NULL;
			memcpy(name, "_Z1f", 4);
			for (size_t at = 4; at < length; at++)
				name[at] = parts[i][at % strlen(parts[i])];
			name[length] = 0;
			ASSERT_OK(demangle_name(name, &readable));
			ASSERT_TRUE(!readable || strlen(readable) <= 2 * DEMANGLE_OUTPUT_MAX);
		}
	}
}

TEST(names_hold_no_control_characters_and_are_stored_once)
{
	_cleanup_(names_deinit) struct names names = NAMES_INIT;
	const char *first, *second, *version;

	ASSERT_OK(names_add(&names, "a\nb\0c\x7f", 6, &first));
	ASSERT_STREQ(first, "a?b?c?");
	ASSERT_OK(names_add(&names, "a?b?c?", 6, &second));
	ASSERT_TRUE(first == second);
	ASSERT_OK(names_add_symbol(&names, "_ZN3foo3barEi@@V_1", "@plt", &version));
	ASSERT_STREQ(version, "foo::bar(int)@plt");
}

RUN_TESTS(UNIT_TEST(mangled_names_become_readable),
	  UNIT_TEST(a_short_name_that_stands_for_gigabytes_is_shown_as_it_is),
	  UNIT_TEST(overlong_and_deeply_nested_names_are_shown_as_they_are),
	  UNIT_TEST(names_hold_no_control_characters_and_are_stored_once))
