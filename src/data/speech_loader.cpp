#include "data/speech_loader.h"

#include <algorithm>

#include "tensor/errors.h"

namespace dgc {
namespace {

constexpr int64_t kMostTries = 100;  // neighbours in a row that cannot be read

std::unique_ptr<const BatchSource> bucketed(const SpeechLoaderOptions& o) {
  auto order = [s = o.sampling, b = o.buckets](int64_t epoch) { return bucketed_order(s, b, epoch); };
  return training_batches(std::make_unique<Sampler>(o.sampling, std::move(order)), o.workers);
}

// [frames, features] of each utterance -> [T, B, F].
void pad(const std::vector<std::vector<float>>& rows, SpeechBatch& batch) {
  const int64_t features = batch.features, count = batch.size();
  batch.frames = count == 0 ? 0 : *std::max_element(batch.lengths.begin(), batch.lengths.end());
  batch.values.assign(static_cast<size_t>(batch.frames * count * features), 0.f);
  for (int64_t b = 0; b < count; ++b) {
    const float* from = rows[static_cast<size_t>(b)].data();
    for (int64_t t = 0; t < batch.lengths[static_cast<size_t>(b)]; ++t, from += features) {
      std::copy_n(from, features, batch.values.data() + (t * count + b) * features);
    }
  }
}

}  // namespace

SpeechBatches::SpeechBatches(const SpeechReader& reader, std::unique_ptr<const BatchSource> source,
                             OnBadExample on_bad_example, InPlaceOfBad in_place_of_bad, const PrefetchOptions& options)
    : reader_(reader),
      source_(std::move(source)),
      on_bad_example_(on_bad_example),
      in_place_of_bad_(in_place_of_bad),
      ahead_(
          source_->count(),
          [this](int64_t number, Item& item, const std::stop_token& stop) { fill(number, item, stop); }, options) {}

const SpeechBatch* SpeechBatches::next() {
  const Item* item = ahead_.next();
  return item != nullptr ? &item->batch : nullptr;
}

void SpeechBatches::fill(int64_t number, Item& item, const std::stop_token& stop) const {
  if (!item.scratch) item.scratch = std::make_unique<SpeechScratch>(reader_.options().features);
  source_->plan(number, item.plan);
  SpeechBatch& batch = item.batch;
  batch.step = item.plan.step;
  batch.worker = item.plan.worker;
  batch.features = reader_.features();
  batch.lengths.clear();
  batch.labels.clear();
  batch.label_lengths.clear();
  batch.utterances.clear();
  batch.bad_examples.clear();
  item.rows.resize(item.plan.samples.size());
  for (const int32_t utterance : item.plan.samples) {
    if (stop.stop_requested()) return;
    if (read(item.plan, utterance, item) || in_place_of_bad_ == InPlaceOfBad::nothing) continue;
    if (!read_neighbour(item.plan, utterance, item)) {
      throw_user_error("{}, and nor can {} others of about its length be read", batch.bad_examples.back(), kMostTries);
    }
  }
  pad(item.rows, batch);
}

bool SpeechBatches::read(const BatchPlan& plan, int64_t utterance, Item& item) const {
  SpeechBatch& batch = item.batch;
  std::optional<SpeechDraw> draw;
  if (plan.augment_seed) draw.emplace(*plan.augment_seed, plan.epoch, utterance);
  std::vector<float>& row = item.rows[static_cast<size_t>(batch.size())];
  try {
    reader_.read(utterance, draw ? &*draw : nullptr, *item.scratch, row);
  } catch (const BadExample& error) {
    if (on_bad_example_ == OnBadExample::refuse) throw;
    batch.bad_examples.emplace_back(error.what());
    return false;
  }
  const auto labels = reader_.corpus().labels(utterance);
  batch.lengths.push_back(static_cast<int32_t>(std::ssize(row) / batch.features));
  batch.labels.insert(batch.labels.end(), labels.begin(), labels.end());
  batch.label_lengths.push_back(static_cast<int32_t>(labels.size()));
  batch.utterances.push_back(static_cast<int32_t>(utterance));
  return true;
}

bool SpeechBatches::read_neighbour(const BatchPlan& plan, int64_t utterance, Item& item) const {
  const size_t sentences = item.batch.bad_examples.size();
  int64_t tries = 0;
  const auto attempt = [&](int64_t i) {
    if (!read(plan, i, item)) return false;
    // Of neighbours that are bad too, their own turn tells.
    item.batch.bad_examples.resize(sentences);
    return true;
  };
  for (int64_t i = utterance - 1; i >= 0 && tries < kMostTries; --i, ++tries) {
    if (attempt(i)) return true;
  }
  for (int64_t i = utterance + 1; i < reader_.corpus().size() && tries < kMostTries; ++i, ++tries) {
    if (attempt(i)) return true;
  }
  item.batch.bad_examples.resize(sentences);
  return false;
}

SpeechLoader::SpeechLoader(const SpeechReader& reader, const SpeechLoaderOptions& o)
    : steps_per_epoch_(o.sampling.steps_per_epoch()),
      batches_(reader, bucketed(o), o.on_bad_example, SpeechBatches::InPlaceOfBad::neighbour, o.prefetch) {
  DGC_CHECK(o.sampling.samples == reader.corpus().size(), "samples of the corpus");
}

SpeechEvalLoader::SpeechEvalLoader(const SpeechReader& reader, int64_t batch, OnBadExample on_bad_example,
                                   const PrefetchOptions& prefetch)
    : batches_(reader, sequential_batches(reader.corpus().size(), batch), on_bad_example,
               SpeechBatches::InPlaceOfBad::nothing, prefetch) {}

const SpeechBatch* SpeechEvalLoader::next() {
  for (const SpeechBatch* batch; (batch = batches_.next()) != nullptr;) {
    if (batch->size() > 0) return batch;
    bad_batches_.insert(bad_batches_.end(), batch->bad_examples.begin(), batch->bad_examples.end());
  }
  return nullptr;
}

}  // namespace dgc
