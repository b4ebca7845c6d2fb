#include "shim/dynamic/command.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <utility>

#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"

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
    for (int up = 0; !error && up < 3; ++up) {  // PREFIX/lib, PREFIX/lib/TRIPLET, PREFIX/lib/TRIPLET/mpisec
        base = base.parent_path();
        const std::filesystem::path program = base / "bin" / "mpisec";
        if (access(program.c_str(), X_OK) == 0) return program;
    }
    return {};
}

SpawnCommand::SpawnCommand(const char* program, char** arguments, MPI_Info info) : info_(info) {
    if (!is_mpisec(program)) words_ = {mpisec_program(), "exec", "--mpi", family, "--"};
    words_.emplace_back(program);
    if (words_.size() > 1 && info != constants.info_null) take_path();
    for (char** argument = arguments; argument && *argument; ++argument) words_.emplace_back(*argument);
}

SpawnCommand::SpawnCommand(SpawnCommand&& other) noexcept
    : words_(std::move(other.words_)),
      pointers_(std::move(other.pointers_)),
      info_(other.info_),
      own_info_(std::exchange(other.own_info_, false)) {}

SpawnCommand::~SpawnCommand() {
    if (own_info_) real.Info_free(&info_);
}

void SpawnCommand::take_path() {
    int length = 0, found = 0;
    if (real.Info_get_valuelen(info_, "path", &length, &found) != MPI_SUCCESS || !found) return;
    std::string path(static_cast<std::size_t>(length) + 1, '\0');
    real.Info_get(info_, "path", length, path.data(), &found);
    path.resize(static_cast<std::size_t>(length));
    MPI_Info without = constants.info_null;
    if (real.Info_dup(info_, &without) != MPI_SUCCESS) return;
    real.Info_delete(without, "path");
    info_ = without;
    own_info_ = true;
    std::string& program = words_.back();
    if (program.find('/') != std::string::npos) return;
    std::istringstream directories(path);
    for (std::string directory; std::getline(directories, directory, ':');) {
        const std::string there = directory + "/" + program;
        if (access(there.c_str(), X_OK) != 0) continue;
        program = there;
        return;
    }
}

char** SpawnCommand::arguments() {
    pointers_.clear();
    for (std::size_t i = 1; i < words_.size(); ++i) pointers_.push_back(words_[i].data());
    pointers_.push_back(nullptr);
    return pointers_.data();
}

}  // namespace mpisec::shim
