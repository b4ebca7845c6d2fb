#include "shim/startup/waiting.hpp"

#include <sched.h>

#include <chrono>
#include <utility>

#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"

namespace mpisec::shim {
namespace {

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

void check_mpi(int code, const char* call) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    real.Error_string(code, text, &length);
    abort_job(std::string("The key exchange at start-up stopped in ") + call + ": " +
              std::string(text, static_cast<std::size_t>(length)) + ".");
}

StallClock::StallClock(const config::Settings& settings, std::string waiting_for)
    : settings_(settings), waiting_for_(std::move(waiting_for)), begun_(seconds_now()) {}

double StallClock::seconds() const {
    return seconds_now() - begun_;
}

void StallClock::look() {
    sched_yield();
    if (process.move_all) process.move_all();
    if (reported_ || settings_.stall_seconds <= 0 || seconds() < settings_.stall_seconds) return;
    reported_ = true;
    std::string sentence =
        "Start-up has waited " + std::to_string(static_cast<int>(seconds())) + " s for " + waiting_for_;
    if (settings_.stall_action == config::Settings::StallAction::abort)
        abort_job(sentence + "; aborting the job, as MPISEC_STALL_ACTION=abort asks.");
    say(sentence +
        "; a rank that was started without `mpisec exec` takes no part in it"
        " (MPISEC_STALL_ACTION=abort ends the job then).");
}

int complete(MPI_Request* request, const std::string& waiting_for, const config::Settings& settings,
             MPI_Status* status) {
    StallClock stall(settings, waiting_for);
    for (;;) {
        int done = 0;
        int code = real.Test(request, &done, status);
        if (code != MPI_SUCCESS || done) return code;
        stall.look();
    }
}

void complete_or_abort(MPI_Request* request, const std::string& waiting_for,
                       const config::Settings& settings) {
    check_mpi(complete(request, waiting_for, settings, MPI_STATUS_IGNORE), "MPI_Test");
}

}  // namespace mpisec::shim
