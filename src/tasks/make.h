#pragma once

#include <memory>

#include "config/options.h"
#include "data/images/image_dataset.h"
#include "optim/dgc/dgc.h"
#include "optim/optimizer.h"

// Makes from plain config options the objects that all kinds of data have, and images.
namespace dgc {

// The set of Split::train or Split::test, cut to data.train_limit or data.test_limit. Throws UserError when it cannot
// be opened, or when its classes are not those that the run has learnt.
std::unique_ptr<ImageDataset> make_images(const Config&, Split);
// The training set in two parts, as data.validation_split says. make_validated_images() throws as make_images() does,
// and UserError when nothing is left to train on.
struct ValidatedImages {
  std::unique_ptr<ImageDataset> train, valid;
};
ValidatedImages make_validated_images(const Config&);

// The type in which a run keeps activations. With bf16 a processor keeps them in fp32, as only its products round.
DType activation_type(const Config&, const Backend&);

// The optimizer of the shared weights. Collective: with exchange.overlap "auto", ranks that are processes find out
// together whether all compute on CPUs (optim/dgc/choose_overlap.h). Throws UserError where messages cannot carry the
// tensors.
std::unique_ptr<Optimizer> make_optimizer(const Config&, const OptimizerContext&);
// How many of `workers` compress: a group of exchange.workers_per_group counts as one. Throws UserError unless
// `workers` form whole groups.
int64_t compressing_workers(const Config&, int64_t workers);
// Throws UserError when the ranks of a run with so many workers and its groups do not fit each other.
void check_groups(const Config&, int64_t workers);
// For an optimizer of type "dgc", and for local steps with any. An overlap of "auto" is off here, because it is decided
// later. Where workers take steps of their own, the options are those of the exchange behind them: its SGD is
// exchange.outer.
DgcOptions make_dgc_options(const Config&);
LrSchedule make_lr_schedule(const Config&);  // the config's schedule over its epochs

}  // namespace dgc
