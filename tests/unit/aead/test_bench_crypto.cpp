// `mpisec bench crypto`: it measures what it was asked for, and says what it cannot.
#include <nlohmann/json.hpp>

#include "cli/bench_crypto.hpp"
#include "support.hpp"

namespace mpisec::aead::test {
namespace {

using cli::bench_crypto;
using cli::BenchCryptoOptions;
using nlohmann::json;

BenchCryptoOptions quick() {
    BenchCryptoOptions options;
    options.sizes = {16, 5000};
    options.threads = {1, 2};
    options.repetitions = 2;
    options.json = true;
    return options;
}

TEST(BenchCrypto, JsonHasOneEntryPerLibraryCipherSizeAndThreadCount) {
    testing::internal::CaptureStdout();
    ASSERT_EQ(bench_crypto(quick()), 0);
    json results = json::parse(testing::internal::GetCapturedStdout());
    EXPECT_EQ(results.size(), implementations().size() * 2 * 2);
    for (const json& entry : results) {
        for (const char* field : {"seal_ns", "open_ns", "memcpy_ns", "seal_over_memcpy", "open_over_memcpy"})
            EXPECT_GT(entry[field].get<double>(), 0) << entry;
        EXPECT_NEAR(entry["seal_gb_per_s"].get<double>() * entry["seal_ns"].get<double>(),
                    entry["bytes"].get<double>() * entry["threads"].get<double>(), 1e-6);
    }
}

TEST(BenchCrypto, TableShowsMemcpyAndTheLibrary) {
    BenchCryptoOptions options = quick();
    options.json = false;
    options.libraries = {"openssl"};
    options.ciphers = {"aes-128-gcm"};
    testing::internal::CaptureStdout();
    ASSERT_EQ(bench_crypto(options), 0);
    std::string table = testing::internal::GetCapturedStdout();
    for (const char* part :
         {"aes-128-gcm, 1 thread ", "aes-128-gcm, 2 threads ", "memcpy", "openssl", "16 B", "5000 B"})
        EXPECT_NE(table.find(part), std::string::npos) << part << "\n" << table;
}

TEST(BenchCrypto, WhatIsNotThereIsAnError) {
    for (auto change : {+[](BenchCryptoOptions& options) { options.libraries = {"nosuch"}; },
                        +[](BenchCryptoOptions& options) { options.ciphers = {"rot13"}; },
                        +[](BenchCryptoOptions& options) {
                            options.libraries = {"openssl"};
                            options.ciphers = {"aegis-128l"};
                        }}) {
        BenchCryptoOptions options = quick();
        change(options);
        testing::internal::CaptureStderr();
        EXPECT_EQ(bench_crypto(options), 2);
        EXPECT_NE(testing::internal::GetCapturedStderr(), "");
    }
}

}  // namespace
}  // namespace mpisec::aead::test
