#include <fmt/core.h>

#include <thread>

#include "commands/commands.h"
#include "dist/communicator.h"
#include "dist/launch/launch.h"
#include "kernels/backend.h"
#include "run/version.h"
#include "tensor/cores.h"
#include "train/ranks/launched_config.h"

namespace dgc {

namespace {

std::string communicators() {
  std::string all = "single, threads";
  if (const std::string mpi = mpi_description(); !mpi.empty()) all += ", mpi (" + mpi + ")";
  if (const std::string nccl = nccl_description(); !nccl.empty()) all += ", nccl (" + nccl + ")";
  return all;
}

std::string meeting(const Launch& launch) {
  if (launch.mpi) return "MPI connects them";
  if (!launch.meeting.is_set()) return "nobody to meet";
  if (launch.meeting.is_file()) return "they meet at " + launch.meeting.url();
  return fmt::format("they meet at {} {} a secret", launch.meeting.url(), launch.secret.given() ? "with" : "without");
}

std::string launcher() {
  const Launch launch = this_launch();
  if (launch.launcher == "alone") return "none: one process";
  return fmt::format("{}: rank {} of {}, number {} of {} on this machine; {}", launch.launcher, launch.rank,
                     launch.size, launch.local_rank, launch.local_size, meeting(launch));
}

// "2", or "2 of 64 to use" where this process is bound to some, or a control group limits it.
std::string cores() {
  const unsigned there = std::thread::hardware_concurrency();
  const auto usable = static_cast<unsigned>(usable_cores());
  return usable < there ? fmt::format("{} of {} to use", usable, there) : fmt::format("{}", there);
}

}  // namespace

void add_info_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("info", "Say what this program is and what this machine has");
  command->footer("Example:\n  dgc info");
  command->callback([] {
    const auto backend = make_backend("auto", 0);
    fmt::print("dgc            {}\n", program_version());
    fmt::print("compiler       {}\n", __VERSION__);
    fmt::print("device         {} (\"device\": \"auto\" uses this one)\n", backend->device()->name());
    fmt::print("GPUs           {}\n", cuda_description());
    fmt::print("cores          {}\n", cores());
    fmt::print("arithmetic     {}\n", backend->arithmetic());
    fmt::print("communicators  {}\n", communicators());
    fmt::print("launcher       {}\n", launcher());
    // A GPU that takes 16-bit activations multiplies in TF32 as well.
    fmt::print("precisions     {}\n", backend->supports(DType::bf16) ? "fp32, tf32, bf16, fp16"
                                      : cpu_multiplies_bf16()        ? "fp32, bf16"
                                                                     : "fp32");
  });
}

}  // namespace dgc
