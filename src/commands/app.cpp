#include "commands/app.h"

#include "commands/commands.h"
#include "run/version.h"

namespace dgc {

std::unique_ptr<CLI::App> make_app() {
  auto app = std::make_unique<CLI::App>(
      "dgc: trains neural networks from JSON configs and exchanges 0.1 % of the gradient (Deep Gradient Compression)",
      "dgc");
  app->set_version_flag("--version", "dgc " + program_version(), "Print the version of this program and exit");
  app->require_subcommand(1);
  app->footer(
      "Examples:\n  dgc train configs/quickstart.json\n  dgc report runs/quickstart -o report.html\n\n"
      "dgc COMMAND --help tells more. Exit codes: 0 done, 1 an error of this program or a rank that failed,\n"
      "2 an error in what it was given, 130 interrupted after the state was saved, or before there was any.");
  add_train_command(*app);
  add_eval_command(*app);
  add_generate_command(*app);
  add_transcribe_command(*app);
  add_predict_command(*app);
  add_plan_command(*app);
  add_bench_command(*app);
  add_report_command(*app);
  add_study_command(*app);
  add_config_command(*app);
  add_info_command(*app);
  add_help_command(*app);
  add_manual_command(*app);
  add_completion_command(*app);
  return app;
}

std::vector<Command> commands_of(const CLI::App& app) {
  std::vector<Command> all = {{app.get_name(), &app}};
  for (const CLI::App* sub : app.get_subcommands(nullptr)) {
    for (const Command& command : commands_of(*sub)) all.push_back({app.get_name() + " " + command.name, command.app});
  }
  return all;
}

}  // namespace dgc
