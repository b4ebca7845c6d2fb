// From MPISEC_AEAD's value to the libraries that seal this job's messages.
#include <algorithm>

#include "aead/aead.hpp"
#include "aead/calibration.hpp"
#include "aead/names.hpp"
#include "aead/self_test.hpp"

namespace mpisec::aead {
namespace {

constexpr Cipher default_cipher = Cipher::aes_256_gcm;

struct Wish {
    std::string library;  ///< empty: whichever is fastest
    std::optional<Cipher> cipher;
};

std::vector<std::string> all_cipher_names() {
    std::vector<std::string> names;
    for (const CipherInfo& entry : ciphers()) names.emplace_back(entry.name);
    return names;
}

Result<Wish> parse(std::string_view setting) {
    std::size_t colon = setting.find(':');
    std::string_view library = setting.substr(0, colon);
    Wish wish;
    if (colon != std::string_view::npos) {
        std::string_view name = setting.substr(colon + 1);
        wish.cipher = cipher_by_name(name);
        if (!wish.cipher)
            return fail("MPISEC_AEAD=" + std::string(setting) + ": there is no cipher \"" +
                        std::string(name) + "\"; choose one of: " + join(all_cipher_names()) + ".");
    } else if (auto cipher = cipher_by_name(library)) {
        return Wish{"", cipher};
    }
    if (!library.empty() && library != "auto") wish.library = library;
    return wish;
}

Result<Selection> checked(const Library* library, Cipher cipher) {
    if (!library->has(cipher))
        return fail("The crypto library " + std::string(library->name()) + " does not offer " +
                    std::string(info(cipher).name) + " on this machine; it offers: " +
                    join(cipher_names(*library)) + ". Choose another with MPISEC_AEAD=library:cipher.");
    if (!self_test(*library, cipher))
        return fail("The crypto library " + std::string(library->name()) + " (" + library->version() +
                    ") fails its self-test with " + std::string(info(cipher).name) +
                    " and is not used. Choose another with MPISEC_AEAD.");
    Selection selection{cipher, {}};
    selection.library.fill(library);
    return selection;
}

// "library" alone means the default cipher if the library has it, else the first cipher that it has.
Result<Selection> pinned(const Wish& wish, const std::string& directory) {
    const std::vector<std::string> there = available(directory);
    if (!wish.cipher && std::ranges::find(there, wish.library) == there.end())
        return fail("MPISEC_AEAD=" + wish.library +
                    ": there is no crypto library and no cipher of this name; " + "libraries in " +
                    directory + ": " + join(there) + "; ciphers: " + join(all_cipher_names()) + ".");
    Result<const Library*> library = load(wish.library, directory);
    if (!library) return tl::unexpected(library.error());
    Cipher cipher = wish.cipher.value_or(default_cipher);
    if (!wish.cipher && !(*library)->has(cipher)) {
        std::vector<std::string> names = cipher_names(**library);
        if (!names.empty()) cipher = *cipher_by_name(names.front());
    }
    return checked(*library, cipher);
}

// A remembered library is used only if it still exists and still passes its self-test.
std::optional<Selection> from_choice(const Choice& choice, Cipher cipher, const std::string& directory) {
    Selection selection{cipher, {}};
    for (std::size_t i = 0; i < size_classes; ++i) {
        auto earlier = std::find(choice.begin(), choice.begin() + i, choice[i]);
        if (earlier != choice.begin() + i) {
            selection.library[i] = selection.library[static_cast<std::size_t>(earlier - choice.begin())];
            continue;
        }
        Result<const Library*> library = load(choice[i], directory);
        if (!library || !checked(*library, cipher)) return std::nullopt;
        selection.library[i] = *library;
    }
    return selection;
}

std::optional<Selection> from_cache(const std::string& cache_file, const CalibrationKey& key, Cipher cipher,
                                    const std::string& directory) {
    if (cache_file.empty()) return std::nullopt;
    std::optional<Choice> choice = recall(cache_file, key);
    return choice ? from_choice(*choice, cipher, directory) : std::nullopt;
}

std::vector<const Library*> working_libraries(Cipher cipher, const std::string& directory) {
    std::vector<const Library*> libraries;
    for (const std::string& name : available(directory)) {
        Result<const Library*> library = load(name, directory);
        if (library && checked(*library, cipher)) libraries.push_back(*library);
    }
    return libraries;
}

}  // namespace

Result<Selection> select(std::string_view setting, const std::string& cache_file) {
    Result<Wish> wish = parse(setting);
    if (!wish) return tl::unexpected(wish.error());
    std::string directory = plugin_directory();
    if (!wish->library.empty()) return pinned(*wish, directory);

    Cipher cipher = wish->cipher.value_or(default_cipher);
    CalibrationKey key = calibration_key(cipher, directory);
    if (auto remembered = from_cache(cache_file, key, cipher, directory)) return *remembered;
    CalibrationTurn turn(cache_file);
    if (auto remembered = from_cache(cache_file, key, cipher, directory))
        return *remembered;  // by the process that this one waited for

    std::vector<const Library*> candidates = working_libraries(cipher, directory);
    if (candidates.empty())
        return fail("No crypto library in " + directory + " offers " + std::string(info(cipher).name) +
                    "; there are: " + join(available(directory)) +
                    ". Choose another cipher with MPISEC_AEAD.");
    Choice choice = calibrate(candidates, cipher);
    std::optional<Selection> selection = from_choice(choice, cipher, directory);
    if (!selection)
        return fail("The crypto libraries in " + directory +
                    " changed while they were being measured; start again.");
    if (!cache_file.empty()) remember(cache_file, key, choice);
    return *selection;
}

}  // namespace mpisec::aead
