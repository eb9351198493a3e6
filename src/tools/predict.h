#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace dgc {

struct Prediction {
  int64_t label = 0;
  std::string name;        // of the class; empty where the run has no names
  double probability = 0;  // by the softmax of the network's output
};

// The likeliest classes, at most `most`, likeliest first and the lower label of two alike. names may be shorter than
// logits. Throws UserError that names `what` where a logit is not finite, because the model has diverged.
std::vector<Prediction> likeliest(std::span<const float> logits, const std::vector<std::string>& names, size_t most,
                                  const std::string& what);

// Classifies JPEG and PNG files, one after another, with the newest good checkpoint of a run on images, which are
// prepared as the run's evaluation prepares its own. told() gets the five likeliest classes of each. Throws UserError
// when the run is of another kind or has no checkpoint, and, as for_each_file() does, for files that are no images.
// overrides: changes to the run's config, as for `dgc train --set`.
void predict(const std::filesystem::path& run, const std::vector<std::string>& files,
             const std::vector<std::string>& overrides,
             const std::function<void(const std::string& file, const std::vector<Prediction>&)>& told);

}  // namespace dgc
