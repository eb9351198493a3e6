#include "tools/predict.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "config/data_types.h"
#include "run/class_names.h"
#include "tensor/errors.h"
#include "tools/each_file.h"
#include "tools/loaded_model.h"

namespace dgc {
namespace {

constexpr size_t kLikeliest = 5;

}  // namespace

std::vector<Prediction> likeliest(std::span<const float> logits, const std::vector<std::string>& names, size_t most,
                                  const std::string& what) {
  if (!std::ranges::all_of(logits, [](float logit) { return std::isfinite(logit); })) {
    throw_user_error("{}: what the model says of it is not finite, so the model has diverged", what);
  }
  const double highest = std::ranges::max(logits);
  std::vector<double> shares;
  for (const float logit : logits) shares.push_back(std::exp(logit - highest));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t label) { return logits[label]; });
  order.resize(std::min(most, order.size()));
  std::vector<Prediction> out;
  for (const size_t label : order) {
    out.push_back({static_cast<int64_t>(label), label < names.size() ? names[label] : "", shares[label] / sum});
  }
  return out;
}

void predict(const std::filesystem::path& run, const std::vector<std::string>& files,
             const std::vector<std::string>& overrides,
             const std::function<void(const std::string&, const std::vector<Prediction>&)>& told) {
  const Config config = config_of_kind(run, overrides, DataKind::images,
                                       "is not the run of a model of images: it cannot look at pictures");
  const DataType& type = data_type(config.data);
  if (type.reader == nullptr) {
    throw_user_error("{}: a model of {} images knows no class of any picture; give a run on real images", run.string(),
                     type.name);
  }
  FoundCheckpoint checkpoint([&] { return newest_model(run); });
  const std::vector<std::string> names = run_class_names(run);
  const Shape image = image_sample(config.data);
  const std::unique_ptr<ImageFileReader> reader = type.reader(config.data.images);
  const LoadedModel model(config, checkpoint, image);
  LoadedExecutor executor(model, {.rows = 1});
  Batch batch;
  batch.values.resize(static_cast<size_t>(image.numel()));
  batch.labels = {0};
  for_each_file(files, [&](const std::string& file) {
    reader->read(file, batch.values.data());
    told(file, likeliest(executor.logits(batch), names, kLikeliest, file));
  });
}

}  // namespace dgc
