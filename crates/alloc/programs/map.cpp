// Fills and empties maps of strings from four threads and prints their contents. With an argument it never
// asks for more memory than there is, because valgrind ends a program whose `new` fails.
#include <cstdio>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

struct alignas(64) Line { char bytes[64]; };

int main(int count, char **) {
    std::vector<std::thread> threads;
    long sums[4] = {};
    for (int k = 0; k < 4; k++)
        threads.emplace_back([k, &sums] {
            std::map<std::string, std::string> map;
            for (long i = 0; i < 30000; i++) {
                map[std::to_string(i * 7919 % 50009)] = std::string(i % 100, char('a' + k));
                if (i % 3 == 0) map.erase(std::to_string(i / 2 * 7919 % 50009));
            }
            for (auto &pair : map) sums[k] += pair.second.size();
        });
    for (auto &thread : threads) thread.join();
    auto line = std::make_unique<Line>();
    bool aligned = reinterpret_cast<unsigned long>(line.get()) % 64 == 0;
    bool thrown = false, asks = count == 1;
    if (asks) try {
        volatile size_t much = size_t(1) << 62;
        ::operator delete(::operator new(much));
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    std::printf("%ld %ld %d %d %d\n", sums[0], sums[3], aligned, thrown,
                asks && new (std::nothrow) char[size_t(1) << 62] == nullptr);
}
