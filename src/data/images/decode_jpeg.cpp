#include <csetjmp>
#include <cstdio>
// libjpeg's headers need <cstdio> before them.
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>

#include "data/images/decode_image.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

// The decompression of one file. A decompressor that is used again keeps the tables of the file before, even of a
// damaged file, and would decode a file without tables with them.
struct JpegFile {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf gave_up{};
  char reason[JMSG_LENGTH_MAX] = "";

  JpegFile();
  ~JpegFile() { jpeg_destroy_decompress(&info); }
  JpegFile(const JpegFile&) = delete;
  JpegFile& operator=(const JpegFile&) = delete;
};

JpegFile& file_of(j_common_ptr common) { return *static_cast<JpegFile*>(common->client_data); }

// libjpeg calls this for an error, and must not get control back.
[[noreturn]] void give_up(j_common_ptr common) {
  JpegFile& file = file_of(common);
  common->err->format_message(common, file.reason);
  std::longjmp(file.gave_up, 1);
}

// Whether all pixels are there in spite of a warning. Some programs pad between markers, and some write a version of
// JFIF, a colour code of Adobe's or limits of the only scan that libjpeg does not know and makes no use of.
bool is_harmless(int warning) {
  return warning == JWRN_EXTRANEOUS_DATA || warning == JWRN_JFIF_MAJOR || warning == JWRN_ADOBE_XFORM ||
         warning == JWRN_NOT_SEQUENTIAL;
}

// Every other warning (below 0) means that some pixels are made up.
void judge_message(j_common_ptr common, int level) {
  if (level < 0 && !is_harmless(common->err->msg_code)) give_up(common);
}

// A small progressive file could otherwise keep a core busy for minutes.
void limit_scans(j_common_ptr common) {
  constexpr int kMostScans = 500;
  if (reinterpret_cast<j_decompress_ptr>(common)->input_scan_number <= kMostScans) return;
  JpegFile& file = file_of(common);
  std::snprintf(file.reason, sizeof(file.reason), "it has more than %d scans", kMostScans);
  std::longjmp(file.gave_up, 1);
}

JpegFile::JpegFile() {
  info.err = jpeg_std_error(&errors);
  info.client_data = this;
  errors.error_exit = give_up;
  errors.emit_message = judge_message;
  progress.progress_monitor = limit_scans;
}

// Runs steps of libjpeg. False where it gave up, and file.reason says why. What the steps own would never be destroyed
// then, so they must own nothing. It stays a function of its own, because longjmp may lose what registers of its frame
// hold.
template <typename Steps>
[[gnu::noinline]] bool attempt(JpegFile& file, const Steps& steps) {
  if (setjmp(file.gave_up) != 0) return false;
  steps();
  return true;
}

// JPEG files with CMYK come from Adobe's programs, which store inverted inks: 255 is no ink.
void cmyk_to_rgb(const uint8_t* cmyk, int64_t pixels, uint8_t* rgb) {
  for (int64_t i = 0; i < pixels; ++i, cmyk += 4) {
    for (size_t c = 0; c < 3; ++c) *rgb++ = static_cast<uint8_t>((cmyk[c] * cmyk[3] + 127) / 255);
  }
}

// The scale at which libjpeg decodes. It knows every number of eighths, but has vector code for these alone; three,
// five, six or seven eighths take as long as the whole.
int eighths_for(const WantedPart& wanted) {
  int eighths = 8;
  const auto enough = [&](int e) {
    return static_cast<double>(wanted.box.height * e) >= 8 * wanted.least_height &&
           static_cast<double>(wanted.box.width * e) >= 8 * wanted.least_width;
  };
  while (eighths > 1 && enough(eighths / 2)) eighths /= 2;
  return eighths;
}

// The pixels that a box touches at a smaller scale.
CropBox touched(const CropBox& box, int eighths) {
  const int64_t top = box.top * eighths / 8, left = box.left * eighths / 8;
  const auto end = [eighths](int64_t at) { return (at * eighths + 7) / 8; };
  return {top, left, end(box.top + box.height) - top, end(box.left + box.width) - left};
}

// Leaves the columns of the box, and few besides, for the rows that are read from here on. Returns the first of them,
// which begins a block.
int64_t crop_columns(jpeg_decompress_struct& info, const CropBox& box) {
  // A pixel's colour is interpolated between neighbours, which must not be cut off.
  constexpr int64_t kNeighbours = 2;
  const int64_t begin = std::max<int64_t>(0, box.left - kNeighbours);
  const int64_t end = std::min<int64_t>(info.output_width, box.left + box.width + kNeighbours);
  auto left = static_cast<JDIMENSION>(begin), width = static_cast<JDIMENSION>(end - begin);
  if (width < info.output_width) jpeg_crop_scanline(&info, &left, &width);
  return left;
}

}  // namespace

void decode_jpeg(std::span<const uint8_t> bytes, const std::string& name, const ChoosePart& choose, ImagePart& out) {
  JpegFile file;
  jpeg_decompress_struct& info = file.info;
  const auto require = [&](bool done) {
    if (!done) throw_user_error("{}: the JPEG file is corrupt or truncated: {}", name, file.reason);
  };
  require(attempt(file, [&] {
    jpeg_create_decompress(&info);
    info.progress = &file.progress;
    jpeg_mem_src(&info, bytes.data(), bytes.size());
    jpeg_read_header(&info, TRUE);
  }));
  check_image_size(info.image_height, info.image_width, name);
  const WantedPart wanted = choose(info.image_height, info.image_width);
  // Of blocks of more than 2 x 2, as 4 x 2, libjpeg-turbo 2.1 leaves out some that a box of a scaled image needs.
  const bool scales = info.max_h_samp_factor * info.max_v_samp_factor <= 4;
  const int eighths = scales ? eighths_for(wanted) : 8;
  const CropBox box = touched(wanted.box, eighths);
  const bool cmyk = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  info.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
  info.dct_method = JDCT_ISLOW;
  // Smoothing guesses what the scans of a progressive file leave out from neighbouring blocks, and guesses something
  // else where a box cuts these off. A file that leaves nothing out has the same pixels with it.
  info.do_block_smoothing = FALSE;
  info.scale_num = static_cast<unsigned>(eighths);
  info.scale_denom = 8;
  int64_t left = 0;
  require(attempt(file, [&] {
    jpeg_start_decompress(&info);
    left = crop_columns(info, box);
  }));

  const auto scaled = [eighths](int64_t pixels) { return static_cast<double>(pixels * eighths) / 8; };
  out.top = scaled(wanted.box.top) - static_cast<double>(box.top);
  out.left = scaled(wanted.box.left) - static_cast<double>(left);
  out.height = scaled(wanted.box.height);
  out.width = scaled(wanted.box.width);
  out.image.height = box.height;
  out.image.width = info.output_width;
  const int64_t stride = out.image.width * 3;
  out.image.pixels.resize(static_cast<size_t>(box.height * stride));
  std::vector<uint8_t> line(static_cast<size_t>(out.image.width) * (cmyk ? 4 : 3));  // for rows of inks, or unwanted
  require(attempt(file, [&] {
    const auto skip = [&](int64_t rows) {
      if (rows > 0) jpeg_skip_scanlines(&info, static_cast<JDIMENSION>(rows));
    };
    const auto read_row = [&](uint8_t* to) { jpeg_read_scanlines(&info, &to, 1); };
    skip(box.top);
    for (int64_t y = 0; y < box.height; ++y) {
      uint8_t* to = out.image.pixels.data() + y * stride;
      read_row(cmyk ? line.data() : to);
      if (cmyk) cmyk_to_rgb(line.data(), out.image.width, to);
    }
    // A file that is damaged below the box is a damaged file, so all of it is read. What is skipped up to the end
    // libjpeg does not look at; hence the last row.
    const int64_t below = static_cast<int64_t>(info.output_height) - (box.top + box.height);
    skip(below - 1);
    if (below > 0) read_row(line.data());
    jpeg_finish_decompress(&info);
  }));
}

}  // namespace dgc
