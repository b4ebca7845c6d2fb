// Finds and opens the crypto plug-ins (docs/crypto-libraries.md).
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>

#include "aead/aead.hpp"
#include "aead/names.hpp"
#include "base/elf.hpp"

namespace mpisec::aead {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "libmpisec-aead-";
constexpr std::string_view suffix = ".so";

// Lowest cost per small message first, as measured (docs/crypto-libraries.md); libraries that are not named here come last.
constexpr std::array<std::string_view, 7> preference = {"ipsec-mb", "ipp",      "boringssl", "aegis",
                                                        "openssl",  "cryptopp", "sodium"};

std::size_t rank_of(std::string_view name) {
    return static_cast<std::size_t>(std::find(preference.begin(), preference.end(), name) -
                                    preference.begin());
}

// A shared crypto library must find its own symbols before those that the program or another library brought, but the sanitizers' runtimes
// refuse RTLD_DEEPBIND.
int open_flags() {
    bool sanitized = dlsym(RTLD_DEFAULT, "__asan_init") || dlsym(RTLD_DEFAULT, "__tsan_init");
    return RTLD_NOW | RTLD_LOCAL | (sanitized ? 0 : RTLD_DEEPBIND);
}

Result<const Library*> open_plugin(const fs::path& file) {
    if (auto whole = read_elf(file); !whole)
        return fail("The crypto plug-in " + file.string() + " cannot be opened: " + whole.error().message +
                    ". Install MPIsec again.");
    void* handle = dlopen(file.c_str(), open_flags());
    if (!handle) return fail("The crypto plug-in " + file.string() + " cannot be opened: " + dlerror());
    auto* table = static_cast<const mpisec_aead_plugin*>(dlsym(handle, MPISEC_AEAD_PLUGIN_SYMBOL));
    if (!table || table->abi != MPISEC_AEAD_PLUGIN_VERSION) {
        dlclose(handle);
        return fail("The crypto plug-in " + file.string() +
                    " belongs to another version of MPIsec; install the two from one build.");
    }
    return new Library(table);  // lives until the process ends, as does the plug-in
}

}  // namespace

std::string join(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text.empty() ? "none" : text;
}

std::vector<std::string> cipher_names(const Library& library) {
    std::vector<std::string> names;
    for (const CipherInfo& entry : ciphers())
        if (library.has(entry.id)) names.emplace_back(entry.name);
    return names;
}

std::string plugin_path(std::string_view name, const std::string& directory) {
    return (fs::path(directory) / (std::string(prefix) + std::string(name) + std::string(suffix))).string();
}

namespace {

std::string directory_beside_library() {
    Dl_info self{};
    std::error_code error;
    fs::path here = ".";
    if (dladdr(reinterpret_cast<const void*>(&plugin_directory), &self) && self.dli_fname) {
        fs::path object = fs::canonical(self.dli_fname, error);
        // A program's own name is its argv[0], which does not have to lead to its file.
        if (error) object = fs::read_symlink("/proc/self/exe", error);
        here = object.parent_path();
    }
    // libmpisec-*.so has the plug-ins beside itself, bin/mpisec has them under its prefix's library directory.
    for (const char* candidate : {"mpisec", "../lib/mpisec", "../" MPISEC_LIBDIR "/mpisec"})
        if (fs::is_directory(here / candidate, error)) return (here / candidate).lexically_normal().string();
    return (here / "mpisec").string();
}

}  // namespace

std::string plugin_directory() {
    if (const char* pinned = secure_getenv("MPISEC_PLUGIN_DIR"); pinned && *pinned) return pinned;
    static const std::string& found = *new std::string(directory_beside_library());  // a dozen system calls
    return found;
}

std::vector<std::string> available(const std::string& directory) {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
         entry.increment(error)) {
        std::string file = entry->path().filename().string();
        if (file.size() > prefix.size() + suffix.size() && file.starts_with(prefix) && file.ends_with(suffix))
            names.push_back(file.substr(prefix.size(), file.size() - prefix.size() - suffix.size()));
    }
    std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
        return std::pair(rank_of(a), std::string_view(a)) < std::pair(rank_of(b), std::string_view(b));
    });
    return names;
}

Result<const Library*> load(std::string_view name, const std::string& directory) {
    // Reached through a pointer that is never freed: keys may still be in use when static destructors run.
    static auto& opened = *new std::map<std::string, const Library*>;
    static std::mutex mutex;

    std::string path = plugin_path(name, directory);
    std::lock_guard lock(mutex);
    if (auto found = opened.find(path); found != opened.end()) return found->second;
    std::vector<std::string> there = available(directory);
    if (std::find(there.begin(), there.end(), name) == there.end())
        return fail("There is no crypto library \"" + std::string(name) + "\" in " + directory +
                    "; there are: " + join(there) + ". Choose one of them with MPISEC_AEAD.");
    Result<const Library*> library = open_plugin(path);
    if (library) opened.emplace(path, *library);
    return library;
}

// Asking for the ciphers here, where one thread loads the library, also makes the plug-in set the library up: threads that make keys at the
// same time later find that done.
Library::Library(const mpisec_aead_plugin* plugin) : plugin_(plugin) {
    for (const CipherInfo& entry : ciphers()) {
        const auto id = static_cast<std::size_t>(entry.id);
        has_[id] = plugin->has(static_cast<int>(id)) != 0;
    }
}

Result<Key> Library::make_key(Cipher cipher, const std::uint8_t* bytes) const {
    if (!has(cipher))
        return fail("The crypto library " + std::string(name()) + " does not offer " +
                    std::string(info(cipher).name) +
                    " on this machine; it offers: " + join(cipher_names(*this)) + ".");
    void* state = plugin_->key_new(static_cast<int>(cipher), bytes);
    if (!state)
        return fail("The crypto library " + std::string(name()) + " could not set up a key for " +
                    std::string(info(cipher).name) + ".");
    return Key(plugin_, state);
}

}  // namespace mpisec::aead
