#pragma once

#include <CLI/CLI.hpp>

// Each function adds one subcommand with its options, help and example, and a callback that runs it. main() turns
// whatever a callback throws into an exit code.
namespace dgc {

void add_train_command(CLI::App& app);
void add_eval_command(CLI::App& app);
void add_generate_command(CLI::App& app);
void add_transcribe_command(CLI::App& app);
void add_predict_command(CLI::App& app);
void add_plan_command(CLI::App& app);
void add_bench_command(CLI::App& app);
void add_report_command(CLI::App& app);
void add_study_command(CLI::App& app);
void add_config_command(CLI::App& app);
void add_info_command(CLI::App& app);
void add_help_command(CLI::App& app);
void add_manual_command(CLI::App& app);
void add_completion_command(CLI::App& app);

}  // namespace dgc
