#include "train/steps/rank_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "tasks/make.h"

namespace dgc {

EvaluatorMemory::EvaluatorMemory(Network made, Backend& backend, std::vector<int64_t> rows, int64_t most_labels,
                                 DType activations)
    : network(std::move(made)),
      executors(network, backend, std::move(rows), Executor::Mode::evaluation, activations),
      input(backend, network, {executors.most_rows(), most_labels}, activations),
      state_layout(network.state()),
      state(backend.device(), state_layout),
      stats(backend.device(), sizeof(LossStats)) {}

namespace {

// A lane's executors are made by the lane's own thread, as its backend is for that thread alone.
std::unique_ptr<Executors> make_in(Lane& lane, const std::function<std::unique_ptr<Executors>()>& make) {
  std::unique_ptr<Executors> made;
  lane.post([&] { made = make(); });
  lane.drain();
  return made;
}

// In how many places the workers compute, where one has so many bytes of activations. The most that cuDNN's plans use
// beside them stands for all that a backend keeps for its ops. Over NCCL each rank has a GPU of its own, and otherwise
// all may share one.
int64_t number_of_places(const Config& config, const Device& device, const Communicator& communicator,
                         size_t activation_bytes) {
  const int64_t most = most_at_once(config);
  if (config.workers_at_once > 0 || most == 1) return most;
  constexpr size_t kScratch = size_t{1} << 30;
  const auto sharing = static_cast<size_t>(communicator.recordable() ? 1 : communicator.size());
  const size_t more = device.free_bytes() / 4 / sharing / (activation_bytes + kScratch);
  return std::min(most, 1 + static_cast<int64_t>(more));
}

std::vector<RankMemory::Place> make_places(const Config& config, const Network& network,
                                           const std::vector<int64_t>& rows, Backend& owner,
                                           const Communicator& communicator) {
  const auto make = [&](Backend& backend) {
    return std::make_unique<Executors>(network, backend, rows, Executor::Mode::training,
                                       activation_type(config, backend));
  };
  const auto part_loss = [&] { return Buffer(owner.device(), config.training.accumulate > 1 ? sizeof(LossStats) : 0); };
  std::vector<RankMemory::Place> places;
  auto alone = config.workers_at_once <= 1 ? make(owner) : nullptr;
  const int64_t count = number_of_places(config, *owner.device(), communicator, alone ? alone->activation_bytes() : 0);
  if (count == 1) {
    places.push_back({nullptr, owner, std::move(alone), part_loss()});
    return places;
  }
  for (auto& lane : owner.make_lanes(static_cast<int>(count))) {
    Backend& backend = lane->backend();
    auto executors = make_in(*lane, [&] { return make(backend); });
    places.push_back({std::move(lane), backend, std::move(executors), part_loss()});
  }
  return places;
  // The analyzer does not follow a lane into the vector.
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks)

}  // namespace

std::string part_name(const char* what, size_t part) { return part == 0 ? what : fmt::format("{}{}", what, part); }

RankMemory::RankMemory(const Config& config, const Network& network, const std::vector<int64_t>& rows,
                       int64_t most_labels, Backend& backend, Communicator& communicator)
    : params(network.params()),
      trained(trained_specs(network.params())),
      statistics(network.buffers()),
      state(network.state()),
      weights(backend.device(), params, MemoryUse::weights),
      mean_statistics(backend.device(), statistics),
      record(backend, communicator, static_cast<int>(config.workers_per_rank)),
      statistics_sum(backend, communicator, static_cast<int>(config.workers_per_rank), statistics.extent(),
                     MemoryUse::other),
      device_(backend.device()) {
  const auto& device = device_;
  const BatchInput::Sizes sizes{*std::ranges::max_element(rows), most_labels};
  for (int64_t i = 0; i < config.workers_per_rank; ++i) {
    Worker& worker = workers.emplace_back(
        Worker{Arena(device, params, MemoryUse::gradients), Arena(device, statistics), Arena(device, statistics), {}});
    for (int64_t part = 0; part < config.training.accumulate; ++part) {
      worker.micro_batches.push_back({Arena(device, state), Arena(device, state),
                                      BatchInput(backend, network, sizes, activation_type(config, backend))});
    }
  }
  optimizer = make_optimizer(config, {.backend = backend,
                                      .communicator = communicator,
                                      .layout = trained,
                                      .local_workers = static_cast<int>(workers.size())});
  // Last, as the memory that is left decides how many places there are.
  places = make_places(config, network, rows, backend, communicator);
}

void RankMemory::share_activations(std::initializer_list<EvaluatorMemory*> evaluations) {
  size_t most = places.front().executors->activation_bytes();
  for (const EvaluatorMemory* evaluation : evaluations) {
    if (evaluation != nullptr) most = std::max(most, evaluation->executors.activation_bytes());
  }
  for (const Place& place : places) {
    const size_t bytes = activations_.empty() ? most : place.executors->activation_bytes();
    place.executors->attach(activations_.emplace_back(device_, bytes, MemoryUse::activations).data());
  }
  for (EvaluatorMemory* evaluation : evaluations) {
    if (evaluation != nullptr) evaluation->executors.attach(activations_.front().data());
  }
}

void RankMemory::for_each_micro_batch(const std::function<void(MicroBatch&)>& call) {
  for (Worker& worker : workers) std::ranges::for_each(worker.micro_batches, call);
}

}  // namespace dgc
