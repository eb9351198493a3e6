#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/images/decode_image.h"
#include "data/images/normalizer.h"
#include "data/images/resize.h"

namespace dgc {

// Memory of read_image_file() and resize_centre() that is kept between calls: decoding would otherwise allocate
// megabytes per image.
struct ImageScratch {
  std::vector<uint8_t> bytes;
  ImagePart part;
  ResizeScratch resize;
};

// Reads and decodes the chosen part of a JPEG or PNG file into scratch.part. Throws UserError that names the file.
void read_image_file(const std::string& name, const ChoosePart&, ImageScratch& scratch);

// Resizes the image in scratch.part so that its shorter side becomes `shorter`, and cuts out the centre. Only the rows
// and columns that end up in the centre are computed. out: [size, size, 3] in 0 ... 255, not rounded.
void resize_centre(ImageScratch& scratch, int64_t shorter, int64_t size, float* out);

// What the shorter side of an image becomes before a folder's evaluation cuts out the centre: round(size * 256 / 224).
int64_t shorter_side(int64_t size);

// Reads single image files as the evaluation of a set of images reads its own images, so that a model can be asked
// about any picture.
class ImageFileReader {
 public:
  virtual ~ImageFileReader() = default;
  // Writes fp32 [height, width, channels], as ImageDataset::read() does. Throws UserError that names the file.
  virtual void read(const std::string& name, float* out) = 0;
};

// For folders of images.
std::unique_ptr<ImageFileReader> make_folder_image_reader(int64_t image_size, Normalizer);

// For square images held in memory (MemoryImages), of side x side pixels: the shorter side becomes `side`, the centre
// is cut out, and pixels are rounded to 8 bits. Where the normaliser has one channel the image becomes grey, as 0.299 R
// + 0.587 G + 0.114 B (ITU-R BT.601). pad_to: see ImageOptions.
std::unique_ptr<ImageFileReader> make_small_image_reader(int64_t side, Normalizer, int64_t pad_to);

}  // namespace dgc
