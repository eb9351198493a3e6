#include "tests/ptx/interpreter/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "tests/ptx/interpreter/error.h"
#include "tests/ptx/interpreter/machine.h"
#include "tests/ptx/interpreter/names.h"
#include "tests/ptx/interpreter/races.h"
#include "tests/ptx/interpreter/warp.h"

namespace dgc::ptx {
namespace {

constexpr unsigned kBlocksAtOnce = 4;  // of a launch that is not cooperative
constexpr unsigned kParamAlignment = 64;
// Where each warp has executed so many instructions, and nobody has changed anything, all spin for what cannot come.
constexpr uint64_t kPatience = 1 << 20;

// Which warp goes on. Where all take turns they stay close together, and a missing barrier rarely shows. So in most
// launches one runs as far ahead as it can, sometimes with all of its block, until the draw puts it behind all others.
enum class Pace { turns, warps_apart, blocks_apart };

class Runner {
 public:
  Runner(const Kernel& kernel, const Launch& how, const void* args)
      : how_(how), warps_of_a_block_((how.block + kWarpSize - 1) / kWarpSize), order_(how.grid) {
    grid_.kernel = &kernel;
    grid_.blocks = how.grid;
    grid_.threads = how.block;
    grid_.random = Random(how.seed);
    args_.resize(kernel.program.param_bytes / kParamAlignment + 1);
    if (kernel.program.param_bytes > 0) std::memcpy(args_.data(), args, kernel.program.param_bytes);
    grid_.args = args_[0].bytes;
    grid_.workspace = reinterpret_cast<uint64_t>(workspace_.data());
    grid_.counts = how.counts;
    if (how.counts != nullptr) how.counts->assign(1, {});
    // Lanes that drift apart take more instructions than a GPU would, which counts are not to depend on.
    grid_.lanes_stay_together = grid_.random.below(4) != 0 || how.counts != nullptr;
    pace_ = static_cast<Pace>(grid_.random.below(3));
    std::iota(order_.begin(), order_.end(), 0u);
    for (size_t n = order_.size(); n > 1; --n) {
      std::swap(order_[n - 1], order_[grid_.random.below(static_cast<uint32_t>(n))]);
    }
    if (how.races != RaceCheck::none) {
      races_.emplace(how.block, how.races == RaceCheck::by_the_letter ? Fences::by_the_letter : Fences::as_on_gpus);
      grid_.races = &*races_;
    }
  }

  void run() {
    blocks_.resize(how_.cooperative ? how_.grid : std::min(how_.grid, 1 + grid_.random.below(kBlocksAtOnce)));
    for (Block& block : blocks_) start(block);
    size_t live = blocks_.size();
    uint64_t spent = 0, changes = 0;
    while (live > 0) {
      Warp& warp = next_warp();
      const unsigned steps = 1 + grid_.random.below(grid_.random.below(4) == 0 ? 8 : 400);
      ptx::run(warp, steps);
      if (warp.block->returned == how_.block) {
        if (started_ < order_.size()) {
          start(*warp.block);
        } else {
          warp.block->warps.clear();
          --live;
        }
        favourite_ = nullptr;
      }
      spent = grid_.changes == changes ? spent + steps : 0;
      changes = grid_.changes;
      if (spent > kPatience * live * warps_of_a_block_) throw_nobody("go round and wait for what nobody does");
    }
    if (races_ && !races_->found().empty()) throw_races();
  }

 private:
  struct alignas(kParamAlignment) Chunk {
    std::byte bytes[kParamAlignment];
  };

  void start(Block& block) {
    const Program& program = grid_.kernel->program;
    block.grid = &grid_;
    block.index = order_[started_++];
    block.waiting = block.returned = 0;
    block.phase = 0;
    block.waits_for_grid = false;
    block.shared.assign(program.shared_bytes, std::byte{0xff});
    block.written.assign(program.shared_bytes, 0);
    block.warps.resize(warps_of_a_block_);
    const int64_t block_priority = pace_ == Pace::blocks_apart ? grid_.random.below(1 << 10) : 0;
    for (size_t n = 0; n < block.warps.size(); ++n) {
      Warp& warp = block.warps[n];
      warp.block = &block;
      warp.first_thread = static_cast<unsigned>(n) * kWarpSize;
      const unsigned threads = std::min(kWarpSize, how_.block - warp.first_thread);
      warp.alive = ~Lanes{0} >> (kWarpSize - threads);
      warp.groups.assign(1, {0, warp.alive, Group::State::runs});
      warp.keeps_current = false;
      warp.priority = block_priority << 10 | grid_.random.below(1 << 10);
      warp.local.assign(size_t{kWarpSize} * program.local_bytes, std::byte{0xff});
      if (warp.registers == nullptr) make_registers(warp);
    }
  }

  void make_registers(Warp& warp) const {
    const Kernel& kernel = *grid_.kernel;
    warp.registers = std::make_unique<std::byte[]>(kernel.register_bytes);
    std::memset(warp.registers.get(), 0xa5, kernel.register_bytes);
    for (const auto& [slot, bits] : kernel.constants32) {
      std::fill_n(warp.lanes<uint32_t>(slot), kWarpSize, static_cast<uint32_t>(bits));
    }
    for (const auto& [slot, bits] : kernel.constants64) std::fill_n(warp.lanes<uint64_t>(slot), kWarpSize, bits);
    for (const auto& [slot, word] : kernel.launch_words)
      std::fill_n(warp.lanes<uint32_t>(slot), kWarpSize, value_of(word));
  }

  uint32_t value_of(const LaunchWord& word) const {
    switch (word.kind) {
      case LaunchWord::Kind::threads:
        return grid_.threads;
      case LaunchWord::Kind::blocks:
        return grid_.blocks;
      case LaunchWord::Kind::workspace_low:
        return static_cast<uint32_t>(grid_.workspace);
      case LaunchWord::Kind::workspace_high:
        return static_cast<uint32_t>(grid_.workspace >> 32);
      case LaunchWord::Kind::argument:
        break;
    }
    uint32_t value = 0;
    std::memcpy(&value, grid_.args + word.offset, sizeof(value));
    return value;
  }

  Warp& next_warp() {
    ready_.clear();
    if (pace_ != Pace::turns && favourite_ != nullptr && can_run(*favourite_)) {
      if (grid_.random.below(8) != 0) return *favourite_;
      favourite_->priority = --lowest_priority_;
    }
    for (Block& block : blocks_) {
      for (Warp& warp : block.warps) {
        if (can_run(warp)) ready_.push_back(&warp);
      }
    }
    if (ready_.empty()) throw_nobody("wait for each other");
    if (pace_ == Pace::turns) return *ready_[grid_.random.below(static_cast<uint32_t>(ready_.size()))];
    favourite_ = *std::ranges::max_element(ready_, {}, &Warp::priority);
    return *favourite_;
  }

  // Says who waits where.
  [[noreturn]] void throw_nobody(const char* what) const {
    std::map<std::string, int> groups;
    for (const Block& block : blocks_) {
      if (block.returned > 0)
        groups[fmt::format("of block {} have returned", block.index)] += static_cast<int>(block.returned);
      for (const Warp& warp : block.warps) {
        for (const Group& group : warp.groups) {
          const Instruction& i = grid_.kernel->code[group.at];
          const char* const state = group.state == Group::State::runs ? "run" : "wait";
          groups[fmt::format("of block {} {} at line {} '{}'", block.index, state, i.line, i.text)] +=
              std::popcount(group.lanes);
        }
      }
    }
    std::string text;
    for (const auto& [where, count] : groups) text += fmt::format("{} {} {}", text.empty() ? "" : ";", count, where);
    throw_ptx_error("{}: threads of {} {}:{}", grid_.kernel->program.file, readable_name(grid_.kernel->program.name),
                    what, text);
  }

  [[noreturn]] void throw_races() const {
    std::string text;
    for (const std::string& race : races_->found()) text += fmt::format("{} {}", text.empty() ? "" : ";", race);
    throw_ptx_error("{}: data races in {}:{}", grid_.kernel->program.file, readable_name(grid_.kernel->program.name),
                    text);
  }

  Launch how_;
  unsigned warps_of_a_block_;
  Grid grid_;
  std::vector<Chunk> args_;
  alignas(kWorkspaceBytes) std::array<uint32_t, kWorkspaceBytes / 4> workspace_{};
  std::optional<Races> races_;
  Pace pace_ = Pace::turns;
  std::vector<unsigned> order_;  // of the blocks
  size_t started_ = 0;
  std::vector<Block> blocks_;  // that are resident
  std::vector<Warp*> ready_;
  Warp* favourite_ = nullptr;
  int64_t lowest_priority_ = 0;
};

}  // namespace

void fail(const Warp& warp, const Instruction& i, unsigned lane, std::string_view what) {
  const Program& program = warp.block->grid->kernel->program;
  throw_ptx_error("{}:{}: {} in '{}' of {}, thread {} of block {}", program.file, i.line, what, i.text,
                  readable_name(program.name), warp.first_thread + lane, warp.block->index);
}

void launch(const Kernel& kernel, const Launch& how, const void* args, size_t args_bytes) {
  const Program& program = kernel.program;
  if (args_bytes != program.param_bytes) {
    throw_ptx_error("{}:{}: {} takes {} bytes of arguments, not {}", program.file, program.line,
                    readable_name(program.name), program.param_bytes, args_bytes);
  }
  if (how.block > program.most_threads) {
    throw_ptx_error("{}:{}: {} takes at most {} threads of a block, not {}", program.file, program.line,
                    readable_name(program.name), program.most_threads, how.block);
  }
  Runner(kernel, how, args).run();
}

}  // namespace dgc::ptx
