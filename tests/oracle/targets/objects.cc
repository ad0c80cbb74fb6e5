/* SPDX-License-Identifier: Apache-2.0 */
/* C++: exceptions through several frames, virtual calls, templates, algorithms, streams. */
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#define NOINLINE __attribute__((noinline))

static volatile long sink;

struct guard {
	NOINLINE ~guard()
	{
		sink = sink + 1;
	}
};

struct shape {
	virtual ~shape() = default;
	virtual long area() const = 0;
};

struct square : shape {
	long side = 3;
	NOINLINE long area() const override
	{
		return side * side;
	}
};

struct other {
	virtual ~other() = default;
	virtual long weight() const = 0;
};

/* Its second base is reached through a thunk. */
struct both : square, virtual other {
	NOINLINE long weight() const override
	{
		return 7;
	}
};

NOINLINE static void thrower(int depth)
{
	guard g;

	if (!depth)
		throw std::runtime_error("deep");
	thrower(depth - 1);
	sink = sink + depth;
}

template <typename T> NOINLINE static T apply(T value, const std::function<T(T)> &to)
{
	return to(value) + 1;
}

NOINLINE static void rethrower()
{
	try {
		thrower(2);
	} catch (const std::logic_error &) {
		sink = 0;
	} catch (...) {
		throw;
	}
}

int main()
{
	std::unique_ptr<shape> a = std::make_unique<square>();
	std::unique_ptr<other> b = std::make_unique<both>();
	std::vector<int> numbers = {5, 2, 9, 4, 7};
	std::map<std::string, int> names;
	std::ostringstream out;

	sink = a->area() + b->weight();
	try {
		rethrower();
	} catch (const std::exception &e) {
		sink = sink + e.what()[0];
	}
	std::sort(numbers.begin(), numbers.end(), [](int x, int y) { return x > y; });
	sink = sink + apply<long>(4, [](long x) { return x * 2; });
	names["one"] = 1;
	names["two"] = 2;
	out << names.size() << ' ' << 1.5 << ' ' << numbers[0];
	sink = sink + static_cast<long>(out.str().size());
	return 0;
}
