// What MPIsec's libraries keep in memory once a job has started.
#pragma once

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace mpisec {

namespace startup_pages {

/// Releases only pages that are the same as in the file: those of writable segments hold relocated pointers and data.
inline void release(const dl_phdr_info& object, const ElfW(Phdr) & segment) {
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) return;
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const std::uintptr_t begin = (object.dlpi_addr + segment.p_vaddr) / page * page;
    const std::uintptr_t end = object.dlpi_addr + segment.p_vaddr + segment.p_filesz;
    madvise(reinterpret_cast<void*>(begin), (end - begin + page - 1) / page * page, MADV_DONTNEED);
}

/// A debugger's breakpoints are in such pages, and nowhere else.
inline bool traced() {
    constexpr std::string_view label = "TracerPid:";
    bool debugged = false;
    char line[256];
    std::FILE* status = std::fopen("/proc/self/status", "re");
    while (status && std::fgets(line, sizeof line, status))
        if (std::string_view(line).starts_with(label))
            debugged = std::strtol(line + label.size(), nullptr, 10) != 0;
    if (status) std::fclose(status);  // NOLINT(cert-err33-c): it was only read
    return debugged;
}

}  // namespace startup_pages

/// Gives back what only start-up needed: free memory of the heap, and the pages of MPIsec's own libraries with relocation tables, handshake
/// and self-tests. Pages that are used again are mapped again from the page cache.
inline void release_startup_pages() {
    malloc_trim(0);
    if (startup_pages::traced()) return;
    dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void*) {
            const char* name = std::strrchr(object->dlpi_name, '/');
            if (name && std::strncmp(name, "/libmpisec-", 11) == 0)
                for (int i = 0; i < object->dlpi_phnum; ++i)
                    startup_pages::release(*object, object->dlpi_phdr[i]);
            return 0;
        },
        nullptr);
}

}  // namespace mpisec
