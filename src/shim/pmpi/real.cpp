#include "shim/pmpi/real.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>

#include "base/error_line.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/exceptions.hpp"

namespace mpisec::shim {

namespace {

// What each family's libraries are called. Debian's MPICH is libmpich.so.12, everybody else's and Intel MPI
// libmpi.so.12.
#if defined(OPEN_MPI)
constexpr const char* family = "Open MPI";
constexpr std::array<const char*, 1> sonames{"libmpi.so.40"};
#elif defined(MPISEC_STANDARD_ABI)
constexpr const char* family = "MPI standard ABI";
constexpr std::array<const char*, 2> sonames{"libmpi_abi.so.1", "libmpi_abi.so.0"};
#else
constexpr const char* family = "MPICH ABI";
constexpr std::array<const char*, 2> sonames{"libmpi.so.12", "libmpich.so.12"};
#endif

/// The libraries named libmpi… that the loader has brought in, except MPIsec's: " (…, …)", or nothing.
std::string loaded_mpi_libraries() {
    std::string names;
    auto add = [](dl_phdr_info* object, std::size_t, void* to) {
        const std::string_view path = object->dlpi_name;
        const std::string_view name = path.substr(path.rfind('/') + 1);
        if (!name.starts_with("libmpi") || name.starts_with("libmpisec")) return 0;
        auto& list = *static_cast<std::string*>(to);
        list += (list.empty() ? " (" : ", ") + std::string(path);
        return 0;
    };
    dl_iterate_phdr(add, &names);
    return names.empty() ? names : names + ")";
}

std::string_view family_of(std::string_view library) {
    if (library.starts_with("libmpi.so.40")) return "Open MPI";
    if (library.starts_with("libmpi_abi.so")) return "MPI standard ABI";
    if (library.starts_with("libmpi.so.12") || library.starts_with("libmpich.so.12")) return "MPICH ABI";
    return {};
}

/// The object that was linked with an MPI library, and that library's name.
struct Linked {
    std::string_view object, library;
};

using Dynamic = ElfW(Dyn);

const Dynamic* dynamic_section(const dl_phdr_info& object) {
    for (int i = 0; i < object.dlpi_phnum; ++i)
        if (object.dlpi_phdr[i].p_type == PT_DYNAMIC)
            return reinterpret_cast<const Dynamic*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
    return nullptr;
}

/// Looks at the program, or a library that it has opened (a Python extension, a plug-in). MPI's own libraries, and MPIsec's, say nothing of
/// the program.
int find_linked(dl_phdr_info* object, std::size_t, void* data) {
    const bool is_program = *object->dlpi_name == '\0';
    const std::string_view path = is_program ? program_invocation_name : object->dlpi_name;
    const std::string_view name = path.substr(path.rfind('/') + 1);
    const Dynamic* const entries = dynamic_section(*object);
    if (!entries || (!is_program && name.starts_with("libmpi"))) return 0;
    ElfW(Addr) strings = 0;
    for (const Dynamic* entry = entries; entry->d_tag != DT_NULL; ++entry)
        if (entry->d_tag == DT_STRTAB) strings = entry->d_un.d_ptr;
    if (strings < object->dlpi_addr) strings += object->dlpi_addr;  // some loaders leave it as in the file
    for (const Dynamic* entry = entries; entry->d_tag != DT_NULL; ++entry) {
        if (entry->d_tag != DT_NEEDED) continue;
        const auto* library = reinterpret_cast<const char*>(strings + entry->d_un.d_val);
        if (family_of(library).empty()) continue;
        *static_cast<Linked*>(data) = {name, library};
        return 1;
    }
    return 0;
}

/// Says, as a sentence, for which MPI the program was built.
std::string built_for(const Linked& linked) {
    if (linked.library.empty()) return "Nothing that is loaded says for which MPI the program was built";
    return std::string(linked.object) + " was built for " + std::string(linked.library) + " (" +
           std::string(family_of(linked.library)) + ")";
}

[[noreturn]] void give_up(bool other_family) {
    Linked linked;
    dl_iterate_phdr(find_linked, &linked);
    other_family |= !linked.library.empty() && family_of(linked.library) != family;
    write_error_line(std::string("MPIsec: ") +
                     (other_family ? "this program uses an MPI library of another kind"
                                   : "this program called MPI, yet no MPI library is loaded") +
                     loaded_mpi_libraries() + ". " + built_for(linked) +
                     "; the library preloaded here protects " + family +
                     " programs. Start the program with `mpisec exec`, which chooses the matching one, and "
                     "link it dynamically with its MPI.");
    std::_Exit(EXIT_FAILURE);
}

/// Whether the MPI library that `handle` reaches speaks this family's ABI. Handles, constants and structures
/// differ between families, so a wrong guess would corrupt memory instead of failing.
bool same_family(void* handle) {
    [[maybe_unused]] const bool open_mpi = dlsym(handle, "ompi_mpi_comm_world") != nullptr;
    using Version = int (*)(int*, int*);
    [[maybe_unused]] int major = -1, minor = -1;
    if (auto abi_version = reinterpret_cast<Version>(dlsym(handle, "PMPI_Abi_get_version")))
        abi_version(&major, &minor);
#if defined(OPEN_MPI)
    return open_mpi;
#elif defined(MPISEC_STANDARD_ABI)
    return major >= 1;
#else
    return !open_mpi && major < 1;
#endif
}

void find_library() {
    bool other_family = false;
    if (dlsym(RTLD_NEXT, "PMPI_Send")) {
        if (same_family(RTLD_NEXT)) return;
        other_family = true;
    }
    // Opened with RTLD_LOCAL, as Python opens its extensions' libraries: in the process, but not in the search order.
    for (const char* soname : sonames) {
        void* handle = dlopen(soname, RTLD_NOLOAD | RTLD_LAZY);
        if (handle && dlsym(handle, "PMPI_Send") && same_family(handle)) {
            process.library = handle;
            return;
        }
    }
    give_up(other_family);
}

struct TextSearch {
    const char* inside;
    const char* begin = nullptr;
    const char* end = nullptr;
};

int find_text(dl_phdr_info* object, std::size_t, void* data) {
    auto& search = *static_cast<TextSearch*>(data);
    for (int i = 0; i < object->dlpi_phnum; ++i) {
        const ElfW(Phdr)& segment = object->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X)) continue;
        const char* begin = reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr);
        if (search.inside < begin || search.inside >= begin + segment.p_memsz) continue;
        search.begin = begin;
        search.end = begin + segment.p_memsz;
        return 1;
    }
    return 0;
}

/// The range of the MPI library's own code. Left empty where the same object also holds the Fortran bindings,
/// whose calls are the user's (M13), and where MPI is part of the executable, whose calls are the user's too.
void find_library_text() {
    const char* send = reinterpret_cast<const char*>(real.Send);
    TextSearch text{send};
    if (!dl_iterate_phdr(find_text, &text)) return;
    auto inside = [&](const void* address) {
        const char* place = static_cast<const char*>(address);
        return place >= text.begin && place < text.end;
    };
    for (const char* fortran : {"mpi_send_", "mpi_send", "mpi_send__", "MPI_SEND", "pmpi_send_",
                                "MPIR_Send_cdesc", "mpi_send_f08_"}) {
        if (inside(library_symbol(fortran))) return;
    }
    if (inside(dlsym(RTLD_DEFAULT, "main")) || inside(reinterpret_cast<const void*>(getauxval(AT_ENTRY))))
        return;
    gate.text_begin = text.begin;
    gate.text_end = text.end;
}

void resolve() {
    find_library();
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define MPISEC_PROCEDURE(name) \
    real.name = reinterpret_cast<decltype(real.name)>(library_symbol("PMPI_" #name));
#include "real_table.inc"
#undef MPISEC_PROCEDURE
#pragma GCC diagnostic pop
    resolve_constants();
    find_library_text();
    let_exceptions_through();
    gate.resolved.store(true, std::memory_order_release);
}

}  // namespace

void* library_symbol(const char* name) {
    return dlsym(process.library ? process.library : RTLD_NEXT, name);
}

bool library_is_loaded() {
    if (gate.resolved.load(std::memory_order_acquire) || dlsym(RTLD_NEXT, "PMPI_Send")) return true;
    bool found = false;
    for (const char* soname : sonames) {
        void* handle = dlopen(soname, RTLD_NOLOAD | RTLD_LAZY);
        if (!handle) continue;
        found = found || (dlsym(handle, "PMPI_Send") && same_family(handle));
        dlclose(handle);
    }
    return found;
}

void resolve_real() {
    std::call_once(process.resolved, resolve);
}

bool called_directly([[maybe_unused]] const char* caller) {
#if defined(__x86_64__)
    std::int32_t distance;
    std::memcpy(&distance, caller - sizeof distance, sizeof distance);
    const char* target = caller + distance;
    return static_cast<unsigned char>(caller[-5]) == 0xE8 && target >= gate.text_begin &&
           target < gate.text_end;
#else
    return false;
#endif
}

}  // namespace mpisec::shim
