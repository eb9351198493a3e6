#include "tools/predict.h"

#include <fmt/core.h>

#include <memory>

#include "commands/commands.h"
#include "commands/overrides.h"
#include "commands/short_spins.h"
#include "commands/standard_output.h"
#include "json/text.h"
#include "tensor/printable.h"

namespace dgc {
namespace {

void print_line(const Prediction& p) {
  fmt::print("{:6.2f} %  {}\n", 100 * p.probability, p.name.empty() ? std::to_string(p.label) : printable(p.name));
}

std::string prediction_json(const std::string& file, const std::vector<Prediction>& predictions) {
  Json object = {{"file", file}, {"top", Json::array()}};
  for (const Prediction& p : predictions) {
    Json one = {{"class", p.label}};
    if (!p.name.empty()) one["name"] = p.name;
    one["probability"] = p.probability;
    object["top"].push_back(std::move(one));
  }
  return json_text(object);
}

}  // namespace

void add_predict_command(CLI::App& app) {
  struct Options {
    std::string run;
    std::vector<std::string> files, overrides;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("predict", "Say what a model of images sees in pictures");
  command->add_option("RUN", options->run, "run directory")->required();
  command->add_option("IMAGE", options->files, "pictures: JPEG or PNG, of any size")->required();
  command->add_flag("--json", options->json, "print one JSON object a line for each picture");
  add_overrides(*command, options->overrides, "override a key of the run's config: --set device=cpu");
  command->footer(
      "Prints the five likeliest classes, with the model's probability for each; of several pictures, below the "
      "file's\nname. A run without names of classes (RUN/classes.json) has numbers instead, and so has an output\n"
      "beyond the classes of the training data. A picture that cannot be read is named, and the others follow; the "
      "exit\ncode is then 2.\n\n"
      "Examples:\n  dgc predict runs/quickstart shoe.png\n  dgc predict runs/imagenet photos/*.jpg --json\n\n"
      "A picture is prepared as the run's evaluation prepares its own: resized and cut to the centre, normalised, and "
      "grey\nfor a model of grey images. MNIST and Fashion-MNIST are bright on black; so must be what their models "
      "look at.");
  command->callback([options] {
    restart_with_short_spins();
    predict(options->run, options->files, options->overrides,
            [&](const std::string& file, const std::vector<Prediction>& predictions) {
              if (options->json) return print_json(prediction_json(file, predictions));
              if (options->files.size() > 1) fmt::print("{}\n", printable(file));
              for (const Prediction& p : predictions) print_line(p);
            });
  });
}

}  // namespace dgc
