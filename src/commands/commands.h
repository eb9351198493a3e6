#pragma once

#include <CLI/CLI.hpp>

// One function per command: it adds a subcommand with its options, help and example, and what to run.
// Whatever a callback throws, main() turns into an exit code.
namespace dgc {

void add_train_command(CLI::App& app);
void add_eval_command(CLI::App& app);
void add_generate_command(CLI::App& app);
void add_transcribe_command(CLI::App& app);
void add_plan_command(CLI::App& app);
void add_bench_command(CLI::App& app);
void add_report_command(CLI::App& app);
void add_config_command(CLI::App& app);
void add_info_command(CLI::App& app);
void add_manual_command(CLI::App& app);
void add_completion_command(CLI::App& app);

}  // namespace dgc
