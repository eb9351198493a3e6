#pragma once

#include <memory>

#include "config/options.h"
#include "data/images/image_dataset.h"
#include "models/network.h"
#include "optim/dgc_layout.h"
#include "optim/lr_schedule.h"
#include "optim/optimizer.h"
#include "optim/sparsity_schedule.h"

// From plain config options to objects. The only place that knows both.
namespace dgc {

// Of a config whose data are images; tasks/datasets.h opens whatever it has.
std::unique_ptr<ImageDataset> make_images(const Config&, Split);

// Dataset::sample() and classes() of the config's data, without opening it: for `dgc plan`.
struct SampleSpec {
  Shape shape;
  int64_t classes = 0;  // 0: only the data can tell
};
SampleSpec sample_spec(const Config&);

// For a Dataset::sample(). Throws UserError where the layers do not fit one another or what they read, or
// model.vocabulary is not known.
Network make_network(const ModelOptions&, const Shape& sample);

// Throws UserError when the data have classes, or words, that a network with so many outputs does not know.
void require_classes(const Config&, int64_t classes, const Dataset&);

// What a worker takes of its data: images, words of each stream, or utterances.
int64_t rows_per_step(const Config&);
// Rows of its batches on the device, of all numbers that they may have: of speech, frames.
std::vector<int64_t> batch_rows(const Config&, const Dataset& train);
// Of all workers together: images, words, or utterances.
int64_t samples_per_step(const Config&);
inline bool is_text(const Config& config) { return config.data.type == DataType::text; }
inline bool is_speech(const Config& config) { return config.model.type == ModelType::deep_speech; }
inline const char* sample_words(const Config& config) {
  return is_text(config) ? "words" : is_speech(config) ? "utterances" : "images";
}

DType activation_type(Precision);

std::unique_ptr<Optimizer> make_optimizer(const Config&, const OptimizerContext&);
// How many of so many workers compress: the groups of exchange.workers_per_group. Throws UserError when they are no
// whole number.
int64_t compressing_workers(const Config&, int64_t workers);
// Throws UserError when the run's ranks and groups of workers do not fit each other.
void check_groups(const Config&);
// How it lays messages out, at a sparsity and with so many workers.
DgcLayoutOptions make_layout_options(const Config&, double sparsity, int64_t workers);
LrSchedule make_lr_schedule(const Config&);
SparsitySchedule make_sparsity_schedule(const OptimizerOptions&);

}  // namespace dgc
