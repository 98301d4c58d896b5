// The scheduler of an emulated block.
#include "block.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <deque>
#include <numeric>
#include <sstream>

namespace host {
namespace {

/// Threads with their stacks, kept from launch to launch.
std::deque<Thread>& pool() {
  thread_local std::deque<Thread> threads;
  return threads;
}

/// SplitMix64.
uint64_t draw(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::string place_name(dim3 at) {
  std::ostringstream text;
  text << '(' << at.x << ',' << at.y << ',' << at.z << ')';
  return text.str();
}

/// Rising numbers as ranges: 0-31,64.
std::string ranges(const std::vector<unsigned>& numbers) {
  std::ostringstream text;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i;
    while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1) end++;
    text << (i ? "," : "") << numbers[i];
    if (end > i) text << '-' << numbers[end];
    i = end + 1;
  }
  return text.str();
}

std::string line_of(const std::source_location& at) {
  std::string file = at.file_name();
  return file.substr(file.find_last_of('/') + 1) + ':' + std::to_string(at.line());
}

bool same_place(const std::source_location& a, const std::source_location& b) {
  if (a.line() != b.line() || a.column() != b.column()) return false;
  // A unit has one copy of a name, and nearly all that meet are of one unit.
  return a.file_name() == b.file_name() || std::strcmp(a.file_name(), b.file_name()) == 0;
}

}  // namespace

constinit thread_local Block* Block::running HOST_NEAR = nullptr;

void Block::Free::operator()(unsigned char* memory) const { std::free(memory); }

void Block::outside() {
  std::fprintf(stderr, "device code outside a kernel\n");
  std::abort();
}

Block::Block(const Launch& how, void (*body)(const void*), const void* args)
    : launch_(how), body_(body), args_(args), meetings_((how.block.count() + kWarp - 1) / kWarp) {
  const unsigned count = static_cast<unsigned>(how.block.count());
  while (pool().size() < count) pool().emplace_back();
  for (unsigned t = 0; t < count; t++) {
    Thread& thread = pool()[t];
    const dim3& size = how.block;
    thread.index = dim3(t % size.x, t / size.x % size.y, t / size.x / size.y);
    thread.number = t;
    thread.lane = t % kWarp;
    thread.warp = t / kWarp;
    threads_.push_back(&thread);
  }
  // Exactly as much as was asked for.
  shared_.reset(static_cast<unsigned char*>(std::malloc(how.shared)));
  priority_.resize(meetings_.size());
  lanes_.resize(meetings_.size());
}

void Block::begin() {
  Block& block = current();
  block.body_(block.args_);
  block.suspend(State::Done, "the end", std::source_location::current());
  std::abort();
}

void Block::run(dim3 place, uint64_t seed) {
  place_ = place;
  random_ = seed;
  done_ = 0;
  failure_.clear();
  if (launch_.shared) std::memset(shared_.get(), 0xff, launch_.shared);
  for (const Declared& of : declared_) std::memset(of.memory.get(), 0xff, of.bytes);
  for (auto& warp : meetings_) {
    for (auto& meeting : warp) meeting->open = false;
  }
  for (Thread* thread : threads_) thread->fiber.reset(begin);
  all_can_run();
  running = this;
  while (done_ < threads_.size()) {
    if (next()) {
      threads_[now_]->fiber.enter();
    } else {
      release_barrier();
    }
    if (!failure_.empty()) {
      running = nullptr;
      throw Failure("kernel " + launch_.kernel + ", block " + place_name(place_) + ": " + failure_);
    }
  }
  running = nullptr;
}

void* Block::shared_of(const void* which, size_t bytes) {
  for (const Declared& of : declared_) {
    if (of.which == which) return of.memory.get();
  }
  auto* memory = static_cast<unsigned char*>(std::malloc(bytes));
  std::memset(memory, 0xff, bytes);
  declared_.push_back({which, std::unique_ptr<unsigned char, Free>(memory), bytes});
  return memory;
}

void Block::can_run(Thread& thread) {
  thread.state = State::Ready;
  if (by_warp()) {
    lanes_[thread.warp] |= 1U << thread.lane;
  } else {
    ready_.push_back(thread.number);
  }
}

void Block::all_can_run() {
  ready_.clear();
  head_ = 0;
  std::fill(lanes_.begin(), lanes_.end(), 0);
  for (auto& priority : priority_) priority = static_cast<unsigned>(draw(random_) >> 40);
  for (Thread* thread : threads_) can_run(*thread);
}

/// Takes the thread that runs next out of those that can, if there is one.
bool Block::next() {
  if (by_warp()) {
    size_t best = lanes_.size();
    for (size_t warp = 0; warp < lanes_.size(); warp++) {
      if (lanes_[warp] && (best == lanes_.size() || priority_[warp] > priority_[best])) best = warp;
    }
    if (best == lanes_.size()) return false;
    // Up or down, so that no order of lanes is the only one.
    const int lane = priority_[best] % 2 ? std::countr_zero(lanes_[best]) : 31 - std::countl_zero(lanes_[best]);
    lanes_[best] &= ~(1U << lane);
    now_ = static_cast<unsigned>(best) * kWarp + static_cast<unsigned>(lane);
    return true;
  }
  if (head_ == ready_.size()) return false;
  if (launch_.schedule) std::swap(ready_[head_], ready_[head_ + draw(random_) % (ready_.size() - head_)]);
  now_ = ready_[head_++];
  if (head_ > 4096) {
    ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
  }
  return true;
}

void Block::suspend(State state, const char* what, std::source_location at) {
  Thread& thread = *threads_[now_];
  thread.state = state;
  thread.what = what;
  thread.at = at;
  done_ += state == State::Done;
  if (Fiber::kPasses && next()) {
    thread.fiber.pass(threads_[now_]->fiber);
  } else {
    thread.fiber.leave();
  }
}

void Block::fail(const std::string& what) {
  failure_ = "thread " + std::to_string(thread().number) + ": " + what;
  thread().fiber.leave();
  std::abort();
}

void Block::barrier(std::source_location at) { suspend(State::Barrier, "__syncthreads", at); }

/// Nobody can run: all wait at one barrier, or somebody waits in vain.
void Block::release_barrier() {
  const Thread* first = nullptr;
  bool together = true;
  for (const Thread* thread : threads_) {
    if (thread->state != State::Barrier) {
      together = false;
    } else if (!first) {
      first = thread;
    } else {
      together = together && same_place(first->at, thread->at);
    }
  }
  if (!together) {
    failure_ = "threads do not meet: " + waiting();
    return;
  }
  all_can_run();
}

/// Who is where, by places.
std::string Block::waiting() const {
  struct Group {
    const Thread* example;
    std::vector<unsigned> numbers;
  };
  std::vector<Group> groups;
  for (const Thread* thread : threads_) {
    auto same = [&](const Group& group) {
      return group.example->state == thread->state && group.example->what == thread->what &&
             same_place(group.example->at, thread->at);
    };
    auto group = std::find_if(groups.begin(), groups.end(), same);
    if (group == groups.end()) group = groups.insert(groups.end(), Group{thread, {}});
    group->numbers.push_back(thread->number);
  }
  std::string text;
  for (const Group& group : groups) {
    const bool ended = group.example->state == State::Done;
    text += (text.empty() ? "" : "; ") + std::string("threads ") + ranges(group.numbers) + (ended ? " ended" : " wait at ") +
            (ended ? "" : std::string(group.example->what) + " (" + line_of(group.example->at) + ")");
  }
  return text;
}

Meeting& Block::enter(uint32_t mask, const char* what, std::source_location at) {
  const Thread& self = thread();
  const unsigned lanes = std::min(kWarp, static_cast<unsigned>(threads_.size()) - self.warp * kWarp);
  const uint32_t there = lanes == kWarp ? ~0U : (1U << lanes) - 1;
  const uint32_t bit = 1U << self.lane;
  if (!(mask & bit)) fail(std::string(what) + " (" + line_of(at) + ") with a mask that leaves out the calling lane");
  if (mask & ~there) fail(std::string(what) + " (" + line_of(at) + ") with a mask of lanes that the block does not have");
  Meeting* free = nullptr;
  for (auto& meeting : meetings_[self.warp]) {
    if (!meeting->open) {
      free = meeting.get();
    } else if (meeting->arrived != meeting->mask && (meeting->mask & mask)) {
      // Lanes still wait here, and one of them is expected elsewhere.
      if (meeting->mask != mask || meeting->what != what || !same_place(meeting->at, at)) {
        fail(std::string("lanes of a warp meet at different operations: ") + what + " (" + line_of(at) + ") and " + meeting->what +
             " (" + line_of(meeting->at) + ")");
      }
      return *meeting;
    }
  }
  if (!free) {
    meetings_[self.warp].push_back(std::make_unique<Meeting>());
    free = meetings_[self.warp].back().get();
  }
  free->open = true;
  free->mask = mask;
  free->arrived = free->left = 0;
  free->what = what;
  free->at = at;
  return *free;
}

void Block::wait(const Meeting& meeting) { suspend(State::Warp, meeting.what, meeting.at); }

void Block::wake(const Meeting& meeting) {
  const Thread& self = thread();
  for (unsigned lane = 0; lane < kWarp; lane++) {
    if ((meeting.mask >> lane & 1) && lane != self.lane) {
      can_run(*threads_[self.warp * kWarp + lane]);
    }
  }
}

void Block::leave(Meeting& meeting, unsigned lane) {
  meeting.left |= 1U << lane;
  meeting.open = meeting.left != meeting.mask;
}

void run(const Launch& how, void (*body)(const void*), const void* args) {
  if (how.block.count() == 0 || how.grid.count() == 0 || how.block.count() > 1024) {
    throw Failure("kernel " + how.kernel + ": a launch of " + std::to_string(how.block.count()) + " threads and " +
                  std::to_string(how.grid.count()) + " blocks");
  }
  if (how.shared > (227U << 10)) throw Failure("kernel " + how.kernel + ": more shared memory than an sm_90 block can have");
  if (how.grid.y > 65535 || how.grid.z > 65535) throw Failure("kernel " + how.kernel + ": a grid beyond 65535 in y or z");
  Block block(how, body, args);
  const uint64_t count = how.grid.count();
  std::vector<uint64_t> order(count);
  std::iota(order.begin(), order.end(), uint64_t{0});
  uint64_t random = how.schedule;
  if (how.schedule) {
    for (uint64_t last = count - 1; last > 0; last--) std::swap(order[last], order[draw(random) % (last + 1)]);
  }
  for (uint64_t at : order) {
    const dim3& grid = how.grid;
    const dim3 place(static_cast<unsigned>(at % grid.x), static_cast<unsigned>(at / grid.x % grid.y),
                     static_cast<unsigned>(at / grid.x / grid.y));
    block.run(place, how.schedule ? draw(random) : 0);
  }
}

}  // namespace host
