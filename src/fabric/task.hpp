// A collective is a coroutine: the same code runs to its end in a blocking call, step by step behind a request, and in the simulation.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

namespace mpisec::fabric {

/// A coroutine that starts when it is first resumed or awaited and gives no value. Errors are noted in the
/// Fabric, not thrown.
class [[nodiscard]] Task {
  public:
    struct promise_type {
        std::coroutine_handle<> caller = std::noop_coroutine();

        Task get_return_object() { return Task(std::coroutine_handle<promise_type>::from_promise(*this)); }
        std::suspend_always initial_suspend() noexcept { return {}; }
        auto final_suspend() noexcept {
            struct BackToCaller {
                bool await_ready() noexcept { return false; }
                std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> done) noexcept {
                    return done.promise().caller;
                }
                void await_resume() noexcept {}
            };
            return BackToCaller{};
        }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };

    Task() = default;
    Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Task& operator=(Task&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Task() {
        if (handle_) handle_.destroy();
    }

    bool done() const { return !handle_ || handle_.done(); }
    /// Runs until the first await that is not ready, or to the end.
    void start() { handle_.resume(); }

    auto operator co_await() && noexcept {
        struct Run {
            std::coroutine_handle<promise_type> task;
            bool await_ready() noexcept { return !task || task.done(); }
            std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) noexcept {
                task.promise().caller = caller;
                return task;
            }
            void await_resume() noexcept {}
        };
        return Run{handle_};
    }

  private:
    explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
    std::coroutine_handle<promise_type> handle_;
};

}  // namespace mpisec::fabric
