// SPDX-License-Identifier: Apache-2.0
// C++ with templates, virtual calls, containers and exceptions that cross many frames.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace {

struct too_deep : std::runtime_error {
	using std::runtime_error::runtime_error;
};

template <int Depth, typename Value> struct tower {
	static Value climb(const Value &value, const std::function<Value(const Value &)> &step)
	{
		std::string held(Depth, 'x'); // something to destroy when an exception passes
		Value next = tower<Depth - 1, Value>::climb(step(value), step);
		return held.empty() ? value : next;
	}
};

template <typename Value> struct tower<0, Value> {
	static Value climb(const Value &value, const std::function<Value(const Value &)> &)
	{
		if (value % 3 == 0)
			throw too_deep("the top");
		return value;
	}
};

struct shape {
	virtual ~shape() = default;
	virtual double area(int times) const = 0;
};

template <typename Number> struct box : shape {
	Number side;
	explicit box(Number n) : side(n) {}
	double area(int times) const override
	{
		return times ? area(times - 1) + side * side : side;
	}
};

long exceptions(long seed)
{
	long caught = 0;
	for (long i = 0; i < 200; i++) {
		try {
			caught += tower<12, long>::climb(seed + i, [](const long &v) { return v + 1; }) & 1;
		} catch (const too_deep &error) {
			caught += error.what()[0];
		}
	}
	return caught;
}

long containers(long seed)
{
	std::map<std::string, std::vector<std::variant<long, std::string>>> table;
	for (long i = 0; i < 2000; i++) {
		std::ostringstream key;
		key << "key-" << (seed * 7919 + i * 104729) % 997;
		if (i % 2)
			table[key.str()].emplace_back(i);
		else
			table[key.str()].emplace_back(key.str());
	}
	long sum = 0;
	for (auto &[key, values] : table) {
		std::sort(values.begin(), values.end());
		for (const auto &value : values)
			sum += std::visit([](const auto &v) {
				if constexpr (std::is_same_v<std::decay_t<decltype(v)>, long>)
					return v;
				else
					return static_cast<long>(v.size());
			}, value);
	}
	return sum;
}

long expressions(long seed)
{
	static const std::regex pattern("([a-z]+)([0-9]+)(-[a-f]*)?");
	std::string text = "abc" + std::to_string(seed) + "-fed and some more of it";
	std::smatch match;
	return std::regex_search(text, match, pattern) ? match.length(0) : 0;
}

double shapes(long seed)
{
	std::vector<std::unique_ptr<shape>> all;
	for (int i = 0; i < 200; i++) {
		if (i % 2)
			all.push_back(std::make_unique<box<double>>(seed + i));
		else
			all.push_back(std::make_unique<box<int>>(i));
	}
	double sum = 0;
	for (const auto &one : all)
		sum += one->area(50);
	return sum;
}

} // namespace

int main()
{
	double sum = 0;
	for (long round = 0; sum != -1; round++)
		sum += static_cast<double>(exceptions(round) + containers(round) + expressions(round)) + shapes(round);
}
