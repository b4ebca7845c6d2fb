#include "engine/topology.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace mpisec::engine {
namespace {

constexpr unsigned max_number = 64 * 1024;

/// Empty when the file cannot be read. On a machine with thousands of threads the kernel's lists take some kilobytes.
std::string content(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return {};
    std::string text(4096, '\0');
    std::size_t n = 0;
    for (ssize_t more; (more = read(file, text.data() + n, text.size() - n)) > 0;) {
        n += static_cast<std::size_t>(more);
        if (n == text.size()) text.resize(2 * n);
    }
    close(file);
    text.resize(n);
    return text;
}

}  // namespace

std::vector<unsigned> numbers_in(const std::string& list) {
    std::vector<unsigned> numbers;
    const char *at = list.data(), *end = at + list.size();
    while (at < end) {
        unsigned first = 0, last = 0;
        auto read = std::from_chars(at, end, first);
        if (read.ec != std::errc()) break;
        last = first;
        if (read.ptr < end && *read.ptr == '-') read = std::from_chars(read.ptr + 1, end, last);
        if (read.ec != std::errc() || last < first || last >= max_number) break;
        for (unsigned number = first; number <= last; ++number) numbers.push_back(number);
        if (read.ptr == end || *read.ptr != ',') break;
        at = read.ptr + 1;
    }
    return numbers;
}

std::vector<HardwareThread> topology_of(const std::vector<unsigned>& cpus, const std::string& system) {
    std::vector<HardwareThread> threads;
    for (unsigned cpu : cpus) {
        const std::vector<unsigned> siblings =
            numbers_in(content(system + "/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list"));
        const auto lowest = std::min_element(siblings.begin(), siblings.end());
        threads.push_back({cpu, lowest == siblings.end() ? cpu : *lowest, 0});
    }
    for (unsigned node : numbers_in(content(system + "/node/online"))) {
        const std::vector<unsigned> near =
            numbers_in(content(system + "/node/node" + std::to_string(node) + "/cpulist"));
        for (HardwareThread& thread : threads)
            if (std::find(near.begin(), near.end(), thread.cpu) != near.end()) thread.node = node;
    }
    return threads;
}

}  // namespace mpisec::engine
