// A file that takes another one's place when it is complete: readers see the old or the new one. In a directory that others can write to,
// nothing of theirs is written into: no file, link or FIFO that has the name already. Where the file system can do without, the file has no
// name until it is complete: a process that is killed leaves nothing behind.
#pragma once

#include <fcntl.h>
#include <sys/random.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace mpisec {

class ReplacedFile {
  public:
    explicit ReplacedFile(std::string path, mode_t mode = 0600) : path_(std::move(path)) {
        std::uint64_t number = 0;
        if (getrandom(&number, sizeof number, 0) != sizeof number) return;
        temporary_ = path_ + "." + std::to_string(number);
        const std::string directory = path_.substr(0, path_.rfind('/') + 1) + ".";
        file_ = open(directory.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, mode);
        named_ = file_ < 0;
        if (named_) file_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        good_ = file_ >= 0;
    }
    ~ReplacedFile() {
        if (file_ < 0) return;
        close(file_);
        if (named_) unlink(temporary_.c_str());
    }
    ReplacedFile(const ReplacedFile&) = delete;
    ReplacedFile& operator=(const ReplacedFile&) = delete;

    bool good() const { return good_; }
    void write(std::string_view text) {
        while (good_ && !text.empty()) {
            const ssize_t written = ::write(file_, text.data(), text.size());
            if (written < 0 && errno == EINTR) continue;
            good_ = written > 0;
            if (good_) text.remove_prefix(static_cast<std::size_t>(written));
        }
    }
    /// False when it could not be written, with errno; then there is no new file.
    bool finish() {
        if (file_ < 0) return false;
        if (good_ && !named_) good_ = named_ = give_name();
        good_ = close(std::exchange(file_, -1)) == 0 && good_;
        if (good_ && std::rename(temporary_.c_str(), path_.c_str()) == 0) return true;
        const int error = errno;
        if (named_) unlink(temporary_.c_str());
        errno = error;
        return false;
    }

  private:
    bool give_name() const {
        const std::string open_file = "/proc/self/fd/" + std::to_string(file_);
        return linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW) == 0;
    }

    std::string path_, temporary_;
    int file_ = -1;
    bool good_ = false, named_ = false;
};

}  // namespace mpisec
