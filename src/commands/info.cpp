#include <fmt/core.h>

#include <thread>

#include "commands/commands.h"
#include "dist/communicator.h"
#include "kernels/backend.h"

namespace dgc {

void add_info_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("info", "Say what this program is and what this machine has");
  command->footer("Example:\n  dgc info");
  command->callback([] {
    const auto backend = make_backend("auto", 0);
    fmt::print("dgc            {} ({})\n", DGC_VERSION, DGC_GIT_VERSION);
    fmt::print("compiler       {}\n", __VERSION__);
    fmt::print("device         {} (\"device\": \"auto\" uses this one)\n", backend->device()->name());
    fmt::print("GPUs           {}\n", cuda_description());
    fmt::print("cores          {}\n", std::thread::hardware_concurrency());
    const std::string nccl = nccl_description();
    fmt::print("communicators  single, threads{}\n", nccl.empty() ? "" : ", nccl (" + nccl + ")");
    // A GPU that takes 16-bit activations multiplies in TF32 as well.
    fmt::print("precisions     {}\n", backend->supports(DType::bf16) ? "fp32, tf32, bf16, fp16" : "fp32");
  });
}

}  // namespace dgc
