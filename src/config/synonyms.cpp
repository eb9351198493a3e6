#include "config/synonyms.h"

#include <algorithm>

#include "config/key_paths.h"
#include "config/keys.h"

namespace dgc {

const std::vector<Synonym>& synonyms() {
  static const std::vector<Synonym> all = {{"lr", "learning_rate.base"},
                                           {"learning_rate", "learning_rate.base"},
                                           {"gamma", "learning_rate.factor"},
                                           {"batch_size", "training.batch_per_worker"},
                                           {"num_epochs", "training.epochs"},
                                           {"num_classes", "model.classes"},
                                           {"num_layers", "model.layers"},
                                           {"hidden_size", "model.hidden"},
                                           {"kernel_size", "kernel"},
                                           {"padding", "pad"},
                                           {"out_channels", "out"},
                                           {"out_features", "out"},
                                           {"epochs", "training.epochs"},
                                           {"momentum", "optimizer.momentum"},
                                           {"classes", "model.classes"},
                                           {"sparsity", "optimizer.sparsity"},
                                           {"num_workers", "data.threads"},
                                           {"workers", "workers_per_rank"},
                                           {"workers", "data.threads"},
                                           {"threads_per_rank", "threads"},
                                           {"warmup", "optimizer.warmup.epochs"},
                                           {"warmup", "learning_rate.warmup_epochs"},
                                           {"grad_clip", "optimizer.clip_norm"},
                                           {"clip_grad_norm", "optimizer.clip_norm"},
                                           {"max_grad_norm", "optimizer.clip_norm"},
                                           {"gradient_accumulation_steps", "training.accumulate"},
                                           {"dropout", "p"}};
  return all;
}

std::string key_of_synonym(const std::string& word, const std::vector<std::string>& paths) {
  for (const Synonym& synonym : synonyms()) {
    if (synonym.word == word && std::ranges::find(paths, synonym.key) != paths.end()) return synonym.key;
  }
  return "";
}

std::string key_called(std::string word) {
  std::ranges::replace(word, '-', '_');
  std::vector<std::string> paths;
  for (const Key& key : config_keys()) paths.push_back(key.path);
  std::ranges::sort(paths);  // several types have a key of one path
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  if (std::string meant = key_of_synonym(word, paths); !meant.empty()) return meant;
  if (std::ranges::find(paths, word) != paths.end()) return word;
  const auto found = std::ranges::find(paths, word, last_name);
  return std::ranges::count(paths, word, last_name) == 1 ? *found : "";
}

}  // namespace dgc
