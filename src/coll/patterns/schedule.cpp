#include "coll/patterns/schedule.hpp"

#include "coll/patterns/folded.hpp"

namespace mpisec::coll {

Schedule tree(const Members& members, std::size_t bytes) {
    const Range all{0, bytes};
    Schedule steps;
    for (int distance = 1; distance < members.size(); distance *= 2) {
        if (members.me() & distance) {
            steps.push_back(Step::send(members.rank(members.me() - distance), all));
            break;
        }
        if (members.me() + distance < members.size())
            steps.push_back(Step::receive(members.rank(members.me() + distance), all, Step::What::higher));
    }
    return steps;
}

Schedule recursive_doubling(const Members& members, std::size_t bytes) {
    const Range all{0, bytes};
    const Folded folded(members, bytes);
    Schedule steps = folded.fold();
    for (int distance = 1; !folded.rests() && distance < folded.places(); distance *= 2) {
        const int peer = folded.rank_at(folded.place() ^ distance);
        const bool lower = folded.place() & distance;
        steps.push_back({peer, all, peer, all, lower ? Step::What::lower : Step::What::higher});
    }
    if (folded.rests())
        steps.push_back(Step::receive(members.rank(members.me() + 1), all, Step::What::result));
    if (folded.stands_for_two()) steps.push_back(Step::send(members.rank(members.me() - 1), all));
    return steps;
}

Schedule prefixes(const Members& members, std::size_t bytes) {
    const Range all{0, bytes};
    Schedule steps;
    for (int distance = 1; distance < members.size(); distance *= 2) {
        Step step;
        if (members.me() + distance < members.size())
            step.to = members.rank(members.me() + distance), step.out = all;
        if (members.me() >= distance)
            step.from = members.rank(members.me() - distance), step.in = all, step.what = Step::What::lower;
        steps.push_back(step);
    }
    return steps;
}

Passing Reducing::start(const Step& step, std::size_t ahead) {
    const fabric::PlaintextBuffer in = step.what == Step::What::result ? partial_.value : partial_.spare;
    const Exchange exchange{step.to, step.out.of(partial_.value), step.from, step.in.of(in)};
    return {edges_, exchange, partial_.reduction->element, ahead};
}

void Reducing::begin() {
    if (!schedule_.empty()) first_.emplace(start(schedule_.front(), Passing::all));
}

fabric::Task Reducing::finish() {
    for (const Step& step : schedule_) {
        Passing passing = first_ ? std::move(*first_) : start(step, Passing::few);
        first_.reset();
        const bool combines = step.what != Step::What::result, lower = step.what == Step::What::lower;
        co_await passing.finish([&](Range part) {
            if (combines) partial_.combine(step.in.part(part), lower);
        });
        if (combines) partial_.turn(lower);
    }
}

}  // namespace mpisec::coll
