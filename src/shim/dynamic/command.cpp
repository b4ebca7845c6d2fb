#include "shim/dynamic/command.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>

namespace mpisec::shim {
namespace {

#if defined(OPEN_MPI)
constexpr const char* family = "openmpi";
#elif defined(MPISEC_STANDARD_ABI)
constexpr const char* family = "abi";
#else
constexpr const char* family = "mpich";
#endif

constexpr char anchor = 0;  // an address in this library

bool is_mpisec(const std::string& program) {
    return std::filesystem::path(program).filename() == "mpisec";
}

}  // namespace

std::string mpisec_program() {
    Dl_info library;
    std::error_code error;
    if (!dladdr(&anchor, &library)) return {};
    std::filesystem::path base = std::filesystem::canonical(library.dli_fname, error).parent_path();
    for (int up = 0; !error && up < 2; ++up) {  // PREFIX/lib, PREFIX/lib/TRIPLET
        base = base.parent_path();
        const std::filesystem::path program = base / "bin" / "mpisec";
        if (access(program.c_str(), X_OK) == 0) return program;
    }
    return {};
}

SpawnCommand::SpawnCommand(const char* program, char** arguments) {
    if (!is_mpisec(program)) words_ = {mpisec_program(), "exec", "--mpi", family, "--"};
    words_.emplace_back(program);
    for (char** argument = arguments; argument && *argument; ++argument) words_.emplace_back(*argument);
}

char** SpawnCommand::arguments() {
    pointers_.clear();
    for (std::size_t i = 1; i < words_.size(); ++i) pointers_.push_back(words_[i].data());
    pointers_.push_back(nullptr);
    return pointers_.data();
}

}  // namespace mpisec::shim
