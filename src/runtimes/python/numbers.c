/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/python/numbers.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	BITS_MAX = 512,
	DIGITS_MAX = BITS_MAX / 15 + 1,
	/* Words of 9 decimal digits in which a number of so many bits has room. */
	WORDS_MAX = BITS_MAX / 29 + 1,
	WORD = 1000000000,
};

struct number {
	bool negative;
	uint64_t count;   /* of digits */
	unsigned bits;    /* in each of them */
	uint64_t highest; /* digit; 0 if there are more than DIGITS_MAX */
	uint32_t digits[DIGITS_MAX];
};

/* Digits have 30 bits in 4 bytes or 15 in 2: Include/longintrepr.h, PYLONG_BITS_IN_DIGIT. */
static bool read_digit(const struct python_heap *heap, uint64_t addr, uint64_t index, uint32_t *ret)
{
	uint32_t size = heap->offsets->long_digit_size == 2 ? 2 : 4;
	uint32_t digit = 0;

	if (!python_heap_bytes(heap, addr + index * size, heap->offsets->long_digits, &digit, size))
		return false;
	*ret = digit & (size == 2 ? 0x7fff : 0x3fffffff);
	return true;
}

/* Sign and count of digits: ob_size up to 3.11; lv_tag since 3.12 (gh-101291). */
static bool read_size(const struct python_heap *heap, uint64_t addr, struct number *number)
{
	uint64_t word;

	if (heap->offsets->long_tag != PYTHON_ABSENT) {
		if (!python_heap_u64(heap, addr, heap->offsets->long_tag, &word))
			return false;
		number->negative = (word & 3) == 2;
		number->count = word >> 3;
		return true;
	}
	if (!python_heap_u64(heap, addr, heap->offsets->long_size, &word))
		return false;
	number->negative = word >> 63;
	number->count = number->negative ? 0 - word : word;
	return true;
}

static bool read_long(const struct python_heap *heap, uint64_t addr, struct number *ret)
{
	struct number number = {.bits = heap->offsets->long_digit_size == 2 ? 15 : 30};

	// No int has more digits than memory has room for: what says so is not one.
	if (!read_size(heap, addr, &number) || number.count > 1ull << 40)
		return false;
	uint32_t highest = 0;
	if (number.count && !read_digit(heap, addr, number.count - 1, &highest))
		return false;
	number.highest = highest;
	for (uint64_t i = 0; i < number.count && number.count <= DIGITS_MAX; i++)
		if (!read_digit(heap, addr, i, &number.digits[i]))
			return false;
	*ret = number;
	return true;
}

static uint64_t bits_of(const struct number *number)
{
	if (!number->count)
		return 0;
	return (number->count - 1) * number->bits +
	       (number->highest ? 64 - (unsigned)__builtin_clzll(number->highest) : 0);
}

/* In words of 9 decimal digits, lowest first. */
static void add_decimal(const struct number *number, struct python_out *out)
{
	uint32_t words[WORDS_MAX] = {0};
	size_t used = 1;

	for (uint64_t i = number->count; i-- > 0;) {
		uint64_t carry = number->digits[i];
		for (size_t k = 0; k < used; k++) {
			carry += (uint64_t)words[k] << number->bits;
			words[k] = (uint32_t)(carry % WORD);
			carry /= WORD;
		}
		for (; carry && used < WORDS_MAX; carry /= WORD)
			words[used++] = (uint32_t)(carry % WORD);
	}
	python_out_addf(out, "%s%" PRIu32, number->negative ? "-" : "", words[used - 1]);
	for (size_t k = used - 1; k-- > 0;)
		python_out_addf(out, "%09" PRIu32, words[k]);
}

static bool print_long(const struct python_heap *heap, uint64_t addr, struct python_out *out)
{
	struct number number;

	if (!read_long(heap, addr, &number))
		return false;
	uint64_t bits = bits_of(&number);
	if (bits > BITS_MAX) {
		python_out_addf(out, "<%sint of %" PRIu64 " bits>",
				number.negative ? "negative " : "", bits);
		return true;
	}
	add_decimal(&number, out);
	if (heap->offsets->version < 0x0300)
		python_out_add(out, "L");
	return true;
}

/* Digits whose first has the weight 10^EXPONENT, as float.__repr__() lays them out. */
static void add_digits(struct python_out *out, const char *digits, int exponent, bool point)
{
	int count = (int)strlen(digits);

	if (exponent < -4 || exponent >= 16) {
		python_out_addf(out, "%.1s%s%se%c%02d", digits, count > 1 ? "." : "", digits + 1,
				exponent < 0 ? '-' : '+', abs(exponent));
		return;
	}
	if (exponent < 0)
		python_out_addf(out, "0.%.*s%s", -exponent - 1, "0000", digits);
	else if (count <= exponent + 1)
		python_out_addf(out, "%s%.*s%s", digits, exponent + 1 - count, "0000000000000000",
				point ? ".0" : "");
	else
		python_out_addf(out, "%.*s.%s", exponent + 1, digits, digits + exponent + 1);
}

/*
 * The fewest digits that read back as VALUE, as 2.7, 3.1 and later write it (bpo-1580). POINT: a
 * whole number ends in ".0".
 */
static void add_double(struct python_out *out, double value, bool point)
{
	char text[40], digits[20] = "";
	int count = 0;

	if (!isfinite(value)) {
		python_out_add(out, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
		return;
	}
	if (signbit(value))
		python_out_add(out, "-");
	value = fabs(value);
	for (int precision = 0; precision < 17; precision++) {
		snprintf(text, sizeof(text), "%.*e", precision, value);
		if (strtod(text, NULL) == value)
			break;
	}
	const char *at = text;
	for (; *at && *at != 'e'; at++)
		if (*at >= '0' && *at <= '9' && count < 17)
			digits[count++] = *at;
	add_digits(out, digits, *at ? (int)strtol(at + 1, NULL, 10) : 0, point);
}

/* As complex.__repr__() does: the real part is left out where it is 0, but not where it is -0. */
static bool print_complex(const struct python_heap *heap, uint64_t addr, struct python_out *out)
{
	double part[2];

	if (!python_heap_bytes(heap, addr, heap->offsets->complex_value, part, sizeof(part)))
		return false;
	bool imaginary = part[0] == 0 && !signbit(part[0]);
	if (!imaginary) {
		python_out_add(out, "(");
		add_double(out, part[0], false);
		if (!signbit(part[1]) || isnan(part[1]))
			python_out_add(out, "+");
	}
	add_double(out, part[1], false);
	python_out_add(out, imaginary ? "j" : "j)");
	return true;
}

static bool print_float(const struct python_heap *heap, uint64_t addr, struct python_out *out)
{
	double value;

	if (!python_heap_bytes(heap, addr, heap->offsets->float_value, &value, sizeof(value)))
		return false;
	add_double(out, value, true);
	return true;
}

static bool print_small(const struct python_heap *heap, uint64_t addr, struct python_out *out)
{
	uint64_t value;

	if (!python_heap_u64(heap, addr, heap->offsets->int_value, &value))
		return false;
	python_out_addf(out, "%" PRId64, (int64_t)value);
	return true;
}

/* bool is made of the int of its version. */
static bool print_bool(const struct python_heap *heap, uint64_t addr, struct python_out *out)
{
	uint64_t value;
	bool small = heap->offsets->int_value != PYTHON_ABSENT;

	if (!python_int_u64(heap, addr, small ? PYTHON_KIND_small : PYTHON_KIND_long, &value))
		return false;
	python_out_add(out, value ? "True" : "False");
	return true;
}

bool python_number_print(const struct python_heap *heap, uint64_t addr, enum python_kind kind,
			 struct python_out *out)
{
	if (kind == PYTHON_KIND_small)
		return print_small(heap, addr, out);
	if (kind == PYTHON_KIND_long)
		return print_long(heap, addr, out);
	if (kind == PYTHON_KIND_bool)
		return print_bool(heap, addr, out);
	if (kind == PYTHON_KIND_float)
		return print_float(heap, addr, out);
	return kind == PYTHON_KIND_complex && print_complex(heap, addr, out);
}

bool python_int_u64(const struct python_heap *heap, uint64_t addr, enum python_kind kind,
		    uint64_t *ret)
{
	struct number number;
	uint64_t value = 0;

	if (kind == PYTHON_KIND_small) {
		if (!python_heap_u64(heap, addr, heap->offsets->int_value, &value) || value >> 63)
			return false;
		*ret = value;
		return true;
	}
	if (kind != PYTHON_KIND_long || !read_long(heap, addr, &number) || number.negative ||
	    bits_of(&number) > 64)
		return false;
	// More digits than such a number needs have a highest one of 0: not canonical, not an int.
	if (number.count > 5)
		return false;
	for (uint64_t i = number.count; i-- > 0;)
		value = value << number.bits | number.digits[i];
	*ret = value;
	return true;
}
