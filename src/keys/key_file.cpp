#include "keys/key_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/key_text.hpp"
#include "keys/hkdf.hpp"

namespace mpisec::keys {
namespace {

constexpr std::string_view file_label = "mpisec-key-1";
constexpr std::size_t checksum_bytes = 4;
constexpr std::size_t key_at = file_label.size() + 1;
constexpr std::size_t checksum_at = key_at + 2 * secret_bytes + 1;
constexpr std::size_t line_bytes = checksum_at + 2 * checksum_bytes;

/// The text of a key file, wiped when it goes out of scope; one byte more than a valid file holds.
struct Text {
    std::array<char, line_bytes + 2> bytes{};
    std::size_t size = 0;
    Text() = default;
    Text(const Text&) = delete;
    Text& operator=(const Text&) = delete;
    ~Text() { wipe(bytes.data(), bytes.size()); }
};

class File {
  public:
    explicit File(int descriptor) : descriptor_(descriptor) {}
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File() {
        if (descriptor_ >= 0) close(descriptor_);
    }
    int get() const { return descriptor_; }
    explicit operator bool() const { return descriptor_ >= 0; }

  private:
    int descriptor_;
};

// Hexadecimal without look-up tables: the digits of a key index no memory.
char hex_digit(unsigned value) {
    return static_cast<char>('0' + value + (((9 - static_cast<int>(value)) >> 8) & ('a' - '0' - 10)));
}

/// 0 … 15, or negative for anything but 0-9 and a-f.
int hex_value(char digit) {
    int c = static_cast<unsigned char>(digit);
    int is_number = ((('0' - 1) - c) & (c - ('9' + 1))) >> 8;  // all ones or zero
    int is_letter = ((('a' - 1) - c) & (c - ('f' + 1))) >> 8;
    return (is_number & (c - '0')) | (is_letter & (c - 'a' + 10)) | (~(is_number | is_letter) & -1);
}

void to_hex(Bytes bytes, char* to) {
    for (std::uint8_t byte : bytes) {
        *to++ = hex_digit(byte >> 4);
        *to++ = hex_digit(byte & 15);
    }
}

/// Negative when a digit is bad.
int from_hex(const char* from, std::uint8_t* to, std::size_t n) {
    int bad = 0;
    for (std::size_t i = 0; i < n; ++i) {
        int high = hex_value(from[2 * i]), low = hex_value(from[2 * i + 1]);
        bad |= high | low;
        to[i] = static_cast<std::uint8_t>((high & 15) << 4 | (low & 15));
    }
    return bad;
}

std::array<std::uint8_t, checksum_bytes> checksum(const Secret& key) {
    Digest digest;
    Sha256().update(as_bytes(file_label)).update(key.span()).finish(digest.data());
    std::array<std::uint8_t, checksum_bytes> sum;
    std::memcpy(sum.data(), digest.data(), sum.size());
    return sum;
}

/// A file whose name were a key would show it to everybody who may look into the directory.
Result<void> check_path(const std::string& path) {
    if (!is_a_key(path)) return {};
    return fail(
        "Where the path of the key file is expected (MPISEC_KEY_FILE) there is a key itself. Others may have "
        "seen it: correct or unset MPISEC_KEY_FILE, then make a new key with `mpisec key new`.");
}

/// An error sentence when the open file is not allowed to hold a key.
Result<void> check_permissions(const File& file, const std::string& path) {
    struct stat status;
    if (fstat(file.get(), &status) != 0)
        return fail(fmt::format("The key file {} cannot be examined: {}.", path, std::strerror(errno)));
    if (!S_ISREG(status.st_mode)) return fail(fmt::format("The key file {} is not a regular file.", path));
    if (status.st_uid != geteuid() && status.st_uid != 0) {
        return fail(fmt::format(
            "The key file {} belongs to user {}, not to you (user {}): use a key file of your own.", path,
            status.st_uid, geteuid()));
    }
    if ((status.st_mode & 077) != 0) {
        return fail(fmt::format(
            "The key file {} is open to others (mode {:04o}): run `chmod 600` on it, and make a new key "
            "if somebody may have read it.",
            path, status.st_mode & 07777));
    }
    return {};
}

Result<void> read_text(const File& file, const std::string& path, Text& text) {
    while (text.size < text.bytes.size()) {
        ssize_t got = read(file.get(), text.bytes.data() + text.size, text.bytes.size() - text.size);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return fail(fmt::format("The key file {} cannot be read: {}.", path, std::strerror(errno)));
        if (got == 0) break;
        text.size += static_cast<std::size_t>(got);
    }
    return {};
}

/// The key in `text`; the last newline may be missing (secrets pasted into other tools lose it).
Result<Secret> parse(const Text& text, const std::string& path) {
    std::size_t size = text.size;
    if (size > 0 && text.bytes[size - 1] == '\n') --size;
    const char* line = text.bytes.data();
    if (size < line_bytes && std::string_view("mpisec-key-1 ").starts_with({line, std::min(size, key_at)})) {
        return fail(fmt::format(
            "The key file {} is incomplete ({} of {} bytes): copy it again from where it was made.", path,
            size, line_bytes));
    }
    if (size != line_bytes || std::string_view(line, key_at) != "mpisec-key-1 " ||
        line[checksum_at - 1] != ' ') {
        return fail(fmt::format(
            "{} is not a key file of this version of MPIsec: make one with `mpisec key new`.", path));
    }
    Secret key;
    std::array<std::uint8_t, checksum_bytes> sum;
    // One decision on all of it: how long this takes does not tell where a digit is wrong.
    int bad = from_hex(line + key_at, key.data(), secret_bytes);
    bad |= from_hex(line + checksum_at, sum.data(), sum.size());
    const std::array<std::uint8_t, checksum_bytes> right = checksum(key);
    for (std::size_t i = 0; i < sum.size(); ++i) bad |= -static_cast<int>(sum[i] ^ right[i]);
    if (bad < 0) {
        return fail(fmt::format(
            "The key file {} is damaged (its checksum is wrong): copy it again from where it was made.",
            path));
    }
    return key;
}

Result<void> make_parents(const std::filesystem::path& directory) {
    std::error_code no_matter;  // mkdir says why
    if (directory.empty() || std::filesystem::is_directory(directory, no_matter)) return {};
    if (auto made = make_parents(directory.parent_path()); !made) return made;
    if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
        return fail(
            fmt::format("The directory {} cannot be made: {}.", directory.string(), std::strerror(errno)));
    }
    return {};
}

/// Writes all and syncs; false with errno set.
bool write_durably(const File& file, const Text& text) {
    std::size_t at = 0;
    while (at < text.size) {
        ssize_t wrote = write(file.get(), text.bytes.data() + at, text.size - at);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return false;
        at += static_cast<std::size_t>(wrote);
    }
    return fsync(file.get()) == 0;
}

}  // namespace

Result<Secret> read_key_file(const std::string& path) {
    if (auto fine = check_path(path); !fine) return tl::unexpected(fine.error());
    // O_NONBLOCK: a FIFO in the key's place is refused below rather than waited for.
    File file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (!file && errno == ENOENT) {
        return fail(
            fmt::format("There is no key file at {}: make one with `mpisec key new`, and put the same file "
                        "on every node with `mpisec key share NODES...`.",
                        path));
    }
    if (!file) return fail(fmt::format("The key file {} cannot be opened: {}.", path, std::strerror(errno)));
    if (auto fine = check_permissions(file, path); !fine) return tl::unexpected(fine.error());
    Text text;
    if (auto fine = read_text(file, path, text); !fine) return tl::unexpected(fine.error());
    return parse(text, path);
}

namespace {

Result<void> write_key_file(const std::string& path, const Secret& key) {
    if (auto fine = check_path(path); !fine) return fine;
    const std::filesystem::path directory = std::filesystem::path(path).parent_path();
    if (auto made = make_parents(directory); !made) return made;

    File file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file && errno == EEXIST) {
        return fail(
            fmt::format("{} is there already and is not overwritten: jobs may depend on that key. Remove it "
                        "first if it is to be replaced.",
                        path));
    }
    if (!file) return fail(fmt::format("The key file {} cannot be made: {}.", path, std::strerror(errno)));

    Text text;
    std::memcpy(text.bytes.data(), file_label.data(), file_label.size());
    text.bytes[key_at - 1] = text.bytes[checksum_at - 1] = ' ';
    to_hex(key.span(), text.bytes.data() + key_at);
    to_hex(checksum(key), text.bytes.data() + checksum_at);
    text.bytes[line_bytes] = '\n';
    text.size = line_bytes + 1;
    // fchmod: the mode given to open() passes through the umask, which may have taken the owner's own rights
    // away.
    if (fchmod(file.get(), 0600) != 0 || !write_durably(file, text)) {
        int why = errno;
        unlink(path.c_str());
        return fail(fmt::format("The key file {} cannot be written: {}.", path, std::strerror(why)));
    }
    File parent(open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (parent) fsync(parent.get());  // so that the name survives a crash too
    return {};
}

}  // namespace

Result<void> create_key_file(const std::string& path) {
    return write_key_file(path, Secret::random());
}

Result<void> derive_key_file(const std::string& path, const Secret& from, std::string_view label) {
    Secret key;
    const std::string info = "mpisec v1 derived key " + std::string(label);
    hkdf_expand(from.span(), as_bytes(info), {key.data(), secret_bytes});
    return write_key_file(path, key);
}

std::string fingerprint(const Secret& key) {
    std::array<std::uint8_t, 8> bytes;
    hkdf_expand(key.span(), as_bytes("mpisec v1 key fingerprint"), bytes);
    std::string text(2 * bytes.size(), '\0');
    to_hex(bytes, text.data());
    return text;
}

}  // namespace mpisec::keys
