#include "base/elf.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>

namespace mpisec {
namespace {

/// A file in memory, read only. Empty when it is not a regular file, or when it cannot be read: errno then says why.
class Mapping {
  public:
    explicit Mapping(const std::string& path) {
        int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (fd < 0) return;
        struct stat status {};
        if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
            size_ = static_cast<std::size_t>(status.st_size);
            data_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
        }
        close(fd);
    }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    ~Mapping() {
        if (ok()) munmap(data_, size_);
    }
    bool ok() const { return data_ != MAP_FAILED; }

    bool holds(std::uint64_t offset, std::uint64_t bytes) const {
        return offset <= size_ && bytes <= size_ - offset;
    }
    /// `count` objects at `offset`; empty when they are not all inside the file.
    template <class T>
    std::span<const T> at(std::uint64_t offset, std::uint64_t count) const {
        if (offset > size_ || count > (size_ - offset) / sizeof(T) || offset % alignof(T) != 0) return {};
        return {reinterpret_cast<const T*>(static_cast<const char*>(data_) + offset), count};
    }
    /// The zero-terminated string at `offset`; empty when it does not end inside the file.
    std::string text(std::uint64_t offset) const {
        if (offset >= size_) return {};
        const char* begin = static_cast<const char*>(data_) + offset;
        std::size_t length = strnlen(begin, size_ - offset);
        return length == size_ - offset ? std::string() : std::string(begin, length);
    }

  private:
    void* data_ = MAP_FAILED;
    std::size_t size_ = 0;
};

bool is_elf(const Mapping& file) {
    auto identity = file.at<unsigned char>(0, EI_NIDENT);
    return !identity.empty() && std::memcmp(identity.data(), ELFMAG, SELFMAG) == 0;
}

bool is_64_bit_little_endian(const Mapping& file) {
    auto identity = file.at<unsigned char>(0, EI_NIDENT);
    return identity[EI_CLASS] == ELFCLASS64 && identity[EI_DATA] == ELFDATA2LSB;
}

/// Where in the file the loader's address `address` comes from.
std::optional<std::uint64_t> file_offset(std::span<const Elf64_Phdr> headers, std::uint64_t address) {
    for (const Elf64_Phdr& header : headers)
        if (header.p_type == PT_LOAD && address >= header.p_vaddr &&
            address - header.p_vaddr < header.p_filesz)
            return header.p_offset + (address - header.p_vaddr);
    return std::nullopt;
}

bool read_dynamic(const Mapping& file, std::span<const Elf64_Phdr> headers, const Elf64_Phdr& dynamic,
                  Elf& elf) {
    auto entries = file.at<Elf64_Dyn>(dynamic.p_offset, dynamic.p_filesz / sizeof(Elf64_Dyn));
    if (entries.empty()) return false;
    std::optional<std::uint64_t> strings;
    for (const Elf64_Dyn& entry : entries)
        if (entry.d_tag == DT_STRTAB) strings = file_offset(headers, entry.d_un.d_ptr);
    if (!strings) return false;
    for (const Elf64_Dyn& entry : entries) {
        if (entry.d_tag == DT_NULL) break;
        if (entry.d_tag == DT_NEEDED) elf.needed.push_back(file.text(*strings + entry.d_un.d_val));
        if (entry.d_tag == DT_SONAME) elf.soname = file.text(*strings + entry.d_un.d_val);
    }
    return true;
}

}  // namespace

Result<std::optional<Elf>> read_elf(const std::string& path) {
    errno = 0;
    Mapping file(path);
    if (!file.ok() && errno != 0) return fail("cannot read " + path + ": " + std::strerror(errno));
    if (!file.ok() || !is_elf(file)) return std::optional<Elf>();

    Elf elf;
    elf.bits = file.at<unsigned char>(EI_CLASS, 1)[0] == ELFCLASS64 ? 64 : 32;
    // The same place in both classes.
    auto machine = file.at<std::uint16_t>(offsetof(Elf64_Ehdr, e_machine), 1);
    if (!machine.empty()) elf.machine = machine[0];
    if (!is_64_bit_little_endian(file)) return elf;

    Error damaged{path + " is not a whole ELF file: its headers lead outside of it"};
    auto head = file.at<Elf64_Ehdr>(0, 1);
    if (head.empty()) return tl::unexpected(damaged);
    auto headers = file.at<Elf64_Phdr>(head[0].e_phoff, head[0].e_phnum);
    if (headers.size() != head[0].e_phnum) return tl::unexpected(damaged);
    for (const Elf64_Phdr& header : headers) {
        // The loader would map it all the same: what is missing then is a bus error.
        if (header.p_type == PT_LOAD && !file.holds(header.p_offset, header.p_filesz))
            return tl::unexpected(damaged);
        if (header.p_type == PT_INTERP) elf.interpreter = file.text(header.p_offset);
        if (header.p_type == PT_DYNAMIC && header.p_filesz > 0 && !read_dynamic(file, headers, header, elf))
            return tl::unexpected(damaged);
    }
    return elf;
}

namespace {

/// Calls `visit(symbol, offset of its name)` for the symbols in the tables of these kinds, until it returns true.
template <class Visit>
bool any_symbol(const Mapping& file, bool of_static_table, Visit visit) {
    if (!file.ok() || !is_elf(file) || !is_64_bit_little_endian(file)) return false;
    auto head = file.at<Elf64_Ehdr>(0, 1);
    if (head.empty()) return false;
    auto sections = file.at<Elf64_Shdr>(head[0].e_shoff, head[0].e_shnum);
    for (const Elf64_Shdr& section : sections) {
        const bool wanted =
            section.sh_type == SHT_DYNSYM || (of_static_table && section.sh_type == SHT_SYMTAB);
        if (!wanted || section.sh_link >= sections.size()) continue;
        const std::uint64_t strings = sections[section.sh_link].sh_offset;
        for (const Elf64_Sym& symbol :
             file.at<Elf64_Sym>(section.sh_offset, section.sh_size / sizeof(Elf64_Sym)))
            if (visit(symbol, strings + symbol.st_name)) return true;
    }
    return false;
}

}  // namespace

std::vector<std::string> mpi_symbols(const std::string& path, Symbols which) {
    std::vector<std::string> names;
    Mapping file(path);
    any_symbol(file, false, [&](const Elf64_Sym& symbol, std::uint64_t name_at) {
        if ((symbol.st_shndx == SHN_UNDEF) != (which == Symbols::imported)) return false;
        std::string name = file.text(name_at);
        if (name.starts_with("MPI_") || name.starts_with("PMPI_") || name.starts_with("mpi_") ||
            name.starts_with("pmpi_"))
            names.push_back(name);
        return false;
    });
    return names;
}

namespace {

bool defines(const Mapping& file, std::string_view beginning) {
    return any_symbol(file, true, [&](const Elf64_Sym& symbol, std::uint64_t name_at) {
        auto name = file.at<char>(name_at, beginning.size());  // no copy: programs have many symbols
        return symbol.st_shndx != SHN_UNDEF && !name.empty() &&
               std::memcmp(name.data(), beginning.data(), beginning.size()) == 0;
    });
}

/// Whether a section of constants (.rodata) holds one of these texts.
bool has_constant(const Mapping& file, std::span<const std::string> texts) {
    auto head = file.at<Elf64_Ehdr>(0, 1);
    if (head.empty()) return false;
    for (const Elf64_Shdr& section : file.at<Elf64_Shdr>(head[0].e_shoff, head[0].e_shnum)) {
        constexpr auto kinds = SHF_ALLOC | SHF_WRITE | SHF_EXECINSTR;
        if (section.sh_type != SHT_PROGBITS || (section.sh_flags & kinds) != SHF_ALLOC) continue;
        const auto bytes = file.at<char>(section.sh_offset, section.sh_size);
        for (const std::string& text : texts)
            if (memmem(bytes.data(), bytes.size(), text.data(), text.size())) return true;
    }
    return false;
}

}  // namespace

bool defines_symbol(const std::string& path, std::string_view beginning) {
    return defines(Mapping(path), beginning);
}

bool contains_mpi_library(const std::string& path) {
    // Put together here, so that this program does not contain them.
    const std::string texts[] = {std::string("MPIR_CVAR_SUPPRESS") + "_ABORT_MESSAGE",
                                 std::string("ompi_mpi") + "_init: "};
    const Mapping file(path);
    if (!file.ok() || !is_elf(file) || !is_64_bit_little_endian(file)) return false;
    // A profiling library that is linked in defines MPI_Init alone.
    return defines(file, "PMPI_Init") || has_constant(file, texts);
}

}  // namespace mpisec
