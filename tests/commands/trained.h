#pragma once

#include <catch.hpp>

#include "config/config.h"
#include "tests/commands/program.h"
#include "tests/data/images/images.h"
#include "tests/support/tiny_speech.h"

// Runs of pictures and of speech, which take a moment to train, in the folder of a program.
namespace dgc::test {

// Runs `dgc train ARGUMENTS`, which must end well.
inline void require_trained(const Program& dgc, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "train");
  const Result trained = dgc.run(arguments);
  INFO(trained.err);
  REQUIRE(trained.code == 0);
}

// Writes red ants and blue bees, such as animals/val/ant/1.png, and trains a model of them.
inline void train_on_pictures(const Program& dgc, const std::string& run) {
  for (const std::string split : {"train", "val"}) {
    for (const std::string name : {"ant", "bee"}) {
      const Bytes pixels = name == "ant" ? solid(9, 12, 250, 10, 10) : solid(9, 12, 10, 10, 250);
      const Bytes png = png_bytes(pixels, 9, 12);
      const std::string folder = "animals/" + split + "/" + name;
      std::filesystem::create_directories(dgc.folder() / folder);
      dgc.write(folder + "/1.png", {png.begin(), png.end()});
    }
  }
  require_trained(
      dgc, {"tiny.json", "--out", run, "--set", R"(data={"type": "image_folder", "path": "animals", "image_size": 8})",
            "--set", "workers_per_rank=1", "--set", "training.batch_per_worker=2", "--set",
            R"(model={"type": "resnet", "depth": 8, "width": 4, "classes": 2})"});
}

// Writes speech.json, whose data are the recordings of `speech`, and trains its model.
inline void train_on_speech(const Program& dgc, const TinySpeech& speech, const std::string& run) {
  dgc.write("speech.json", resolved_json(speech.config({"training.epochs=1"})));
  require_trained(dgc, {"speech.json", "--out", run});
}

}  // namespace dgc::test
