#include "tools/loaded_model.h"

#include "config/config.h"
#include "config/data_types.h"
#include "run/class_names.h"
#include "run/run_directory.h"
#include "run/vocabulary_file.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

// Whether the images of another type have the labels by which a run knows its classes. A folder of images has its
// classes by their names.
bool knows_classes(const std::filesystem::path& run, const Config& config) {
  return data_type(config.data).name == "image_folder" && !run_class_names(run).empty();
}

// Whether the key says what a label stands for. Speech has its labels from the alphabet, whatever type its lists are.
bool numbers_labels(const std::string& key, const Config& config) {
  return key == "data.only_classes" || key == "data.alphabet" ||
         (key == "data.type" && data_type(config.data).kind == DataKind::images);
}

// Keys that say which samples of the training set are held back.
bool draws_held_back(const std::string& key) {
  return key == "seed" || key == "data.validation_split" || key == "data.train_limit" || key == "data.train" ||
         key == "data.type";
}

}  // namespace

// The words of a run are those in its vocabulary.txt, and a LoadedModel computes in fp32 on any machine.
Config config_of_model(const std::filesystem::path& run, const std::vector<std::string>& overrides) {
  Config config = run_config(run, overrides);
  const Config own = run_config(run);
  for (const auto& [key, before, now] : config_differences(own, config)) {
    if (key == "precision") {
      throw_user_error("precision: a trained model computes in fp32, whatever it was trained in; leave this --set out");
    }
    if (key.starts_with("data.vocabulary")) {
      throw_user_error("{}: the run knows the words of {}, and no others; leave this --set out", key,
                       (run / kVocabularyFile).string());
    }
    if (numbers_labels(key, own) && !knows_classes(run, config)) {
      throw_user_error("{}: the model has learnt the labels of the run's own data; leave this --set out", key);
    }
    // With a share of 0 there is no validation set to be wrong.
    if (config.data.validation_split > 0 && draws_held_back(key)) {
      throw_user_error(
          "{}: another validation set would be held back than the run's own, and the model was trained on part of it; "
          "leave this --set out, or set data.validation_split to 0",
          key);
    }
  }
  return config;
}

Config config_of_kind(const std::filesystem::path& run, const std::vector<std::string>& overrides, DataKind kind,
                      const char* otherwise) {
  Config config = config_of_model(run, overrides);
  if (model_type(config.model).reads == kind) return config;
  throw_user_error("{} {}", run.string(), otherwise);
}

void FoundCheckpoint::load(const Arena& weights, const Arena& statistics, std::span<const Network::Tie> ties) {
  while (true) {
    try {
      return load_weights(checkpoint_, weights, statistics, ties);
    } catch (const UserError&) {
      std::error_code error;
      if (std::filesystem::exists(checkpoint_.path() / kWeightsFile, error)) throw;
      checkpoint_ = find_();
    }
  }
}

LoadedExecutor::LoadedExecutor(const LoadedModel& model, const BatchInput::Sizes& sizes)
    : model_(model),
      input_(*model.backend, model.network, sizes, DType::f32),
      executor_(model.network, *model.backend, sizes.rows, Executor::Mode::evaluation),
      state_layout_(model.network.state()),
      state_(model.backend->device(), state_layout_),
      activations_(model.backend->device(), executor_.activation_bytes()) {
  executor_.attach(activations_.data());
}

View LoadedExecutor::run(const Batch& batch) {
  input_.stage(batch);
  input_.arrive();
  return executor_.forward(model_.weights, model_.statistics, input_.x(),
                           {.training = false, .state = &state_, .lengths = input_.lengths()});
}

std::span<const float> LoadedExecutor::logits(const Batch& batch) {
  const std::shared_ptr<Device>& device = model_.backend->device();
  const Shape shape = model_.network.loss().logits_shape(run(batch).shape);
  logits_.resize(static_cast<size_t>(shape.numel()));
  const size_t bytes = logits_.size() * sizeof(float);
  std::byte* const to = at_least(bytes, device_logits_, device, MemoryUse::other);
  executor_.logits(model_.weights, {to, shape});
  device->copy_out(logits_.data(), to, bytes);
  return logits_;
}

}  // namespace dgc
