#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "dist/communicator.h"
#include "dist/launch/launch.h"
#include "kernels/backend.h"

namespace dgc::test {

// Runs `body` on ranks that are threads with a GPU each, which NCCL connects. Returns what each rank threw; empty:
// nothing. A rank that throws ends the others, as the watch over a run's processes does.
inline std::vector<std::string> on_nccl_ranks(int ranks,
                                              const std::function<void(int rank, Backend&, Communicator&)>& body) {
  const auto peers = make_thread_communicators(ranks);
  std::atomic<bool> failed = false;
  const auto failure = [&] { return failed ? std::optional<std::string>("another rank has failed") : std::nullopt; };
  const auto news = [&] {
    if (const auto known = failure()) throw PeerFailed(*known);
  };
  std::vector<std::string> outcomes(static_cast<size_t>(ranks));
  std::vector<std::jthread> threads;
  for (int number = 0; number < ranks; ++number) {
    threads.emplace_back([&, number] {
      Communicator& own = *peers[static_cast<size_t>(number)];
      std::unique_ptr<Communicator> communicator;
      try {
        const auto backend = make_cuda_backend(number, Fp32Math::exact);  // is destroyed first, with its recordings
        Launch launch;
        launch.size = ranks;
        launch.rank = launch.local_rank = number;
        NcclOptions options;
        options.peers = &own;
        options.meeting.while_waiting = [&](const std::string&) { news(); };
        options.while_waiting = news;
        options.failure = failure;
        communicator = make_nccl_communicator(launch, backend->device(), options);
        try {
          body(number, *backend, *communicator);
        } catch (const std::exception& error) {
          communicator->abort(error.what());
          throw;
        }
      } catch (const std::exception& error) {
        outcomes[static_cast<size_t>(number)] = error.what();
        failed = true;
        own.abort(error.what());
      }
    });
  }
  threads.clear();
  return outcomes;
}

}  // namespace dgc::test
