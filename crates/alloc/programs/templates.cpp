// Work for a compiler: regular expressions, variants, and a few hundred instantiations of templates.
#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

template <int N> struct Shape {
    std::array<int, N % 7 + 1> sides{};
    std::map<std::string, int> names;
    int weigh() const {
        int sum = N;
        for (int side : sides) sum += side * N;
        for (auto &[name, value] : names) sum += int(name.size()) * value;
        return sum;
    }
};

template <int N> int build(const std::string &text) {
    Shape<N> shape;
    for (size_t i = 0; i < shape.sides.size(); i++) shape.sides[i] = int(i * N);
    std::istringstream words(text);
    for (std::string word; words >> word;) shape.names[word] += N;
    return shape.weigh();
}

template <int... Ns> int build_all(const std::string &text, std::integer_sequence<int, Ns...>) {
    return (build<Ns>(text) + ...);
}

using Value = std::variant<int, double, std::string, std::vector<int>, std::tuple<int, std::string>>;

struct Weigh {
    size_t operator()(int value) const { return size_t(value); }
    size_t operator()(double value) const { return size_t(value * 2); }
    size_t operator()(const std::string &value) const { return value.size(); }
    size_t operator()(const std::vector<int> &value) const { return value.size() * 3; }
    size_t operator()(const std::tuple<int, std::string> &value) const { return std::get<1>(value).size(); }
};

int main() {
    std::string text;
    for (int i = 0; i < 300; i++) text += "word" + std::to_string(i * 7919 % 97) + (i % 10 ? " " : "; ");
    std::regex pattern("([a-z]+)([0-9]{2,})(;?)");
    std::unordered_map<std::string, size_t> counts;
    for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match) counts[match->str(2)]++;
    std::vector<Value> values{1, 2.5, text, std::vector<int>(50), std::tuple<int, std::string>(1, "two")};
    std::vector<std::function<size_t()>> calls;
    for (auto &value : values) calls.push_back([&value] { return std::visit(Weigh{}, value); });
    size_t sum = counts.size();
    for (auto &call : calls) sum += call();
    std::sort(values.begin(), values.end(), [](auto &a, auto &b) { return std::visit(Weigh{}, a) < std::visit(Weigh{}, b); });
    std::printf("%zu %zu %d\n", sum, values.size(), build_all(text, std::make_integer_sequence<int, 200>()));
}
