#include "tools/report/report_page.h"

namespace dgc {

// The runs' colours are Okabe and Ito's palette, which readers with any colour vision can tell apart; dark pages have
// lighter ones. Runs of one colour differ in their dashes. Round ends add a line's width to each dash and dot.
const char* const kReportStyle = R"css(
:root { color-scheme: light dark; --page: #fff; --ink: #1b1f24; --soft: #5b6470; --rule: #e3e6ea; --axis: #8b949e; --shade: #1b1f2459;
  --r0: #0072b2; --r1: #d55e00; --r2: #009e73; --r3: #b8578f; --r4: #c58800; --r5: #3a9bd9; --r6: #555; }
@media (prefers-color-scheme: dark) { :root { --page: #14171b; --ink: #e8ebee; --soft: #9aa4b0; --rule: #2a3037;
  --axis: #68727d; --shade: #e8ebee59; --r0: #4fb0ee; --r1: #ff8a4a; --r2: #2cc79a; --r3: #e79cc7; --r4: #f2b632; --r5: #9bd7ff; --r6: #c4c4c4; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 1200px; margin: 0 auto; padding: 24px 20px 60px; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .4em; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 1.8em 0 .5em; }
.lead p { margin: 0 0 .4em; font-size: 1.08rem; overflow-wrap: anywhere; }
.scripted .static { display: none; }
input:not([type=range]) { position: absolute; opacity: 0; }
label, .controls button { font: inherit; background: none; display: inline-block; margin: 14px 8px 6px 0; padding: 3px 12px; border: 1px solid var(--rule); border-radius: 99px;
  cursor: pointer; color: var(--soft); font-size: .9rem; }
.controls { display: flex; flex-wrap: wrap; gap: 4px 28px; align-items: center; margin: 0 0 16px; }
.controls button:disabled { opacity: .45; cursor: default; }
.slider { display: flex; align-items: center; gap: 10px; }
.chip { position: relative; } .chip label { margin: 3px 6px 3px 0; }
fieldset { border: 0; margin: 0; padding: 0; } fieldset legend { float: left; padding: 6px 12px 0 0; color: var(--soft); font-size: .9rem; }
input:checked + label { border-color: var(--ink); color: var(--ink); }
input:focus-visible + label, button:focus-visible, .plot:focus-visible { outline: 2px solid var(--r0); outline-offset: 2px; }
#by-epochs:checked ~ .steps, #by-steps:checked ~ .epochs { display: none; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 22px; margin: 4px 0 14px; padding: 8px 0; list-style: none;
  background: var(--page); border-bottom: 1px solid var(--rule); }
@media screen and (min-width: 641px) { .legend { position: sticky; top: 0; z-index: 2; max-height: 30vh; overflow-y: auto; } }
.legend li { overflow-wrap: anywhere; }
thead i { display: block; margin: 0 0 4px auto; }
.legend button { font: inherit; color: inherit; background: none; border: 0; padding: 3px 4px; margin: 0 -4px; text-align: left; cursor: pointer; }
.legend button[aria-pressed=false] { opacity: .45; text-decoration: line-through; }
.legend em { color: var(--soft); font-style: normal; }
i { display: inline-block; width: 28px; height: 4px; border-radius: 2px; margin-right: 8px; vertical-align: middle;
  background: currentColor; }
i.d1 { background: repeating-linear-gradient(90deg, currentColor 0 7px, transparent 7px 10.5px); }
i.d2 { background: repeating-linear-gradient(90deg, currentColor 0 4px, transparent 4px 8px); }
i.d3 { background: repeating-linear-gradient(90deg, currentColor 0 10px, transparent 10px 14px, currentColor 14px 18px, transparent 18px 22px); }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); gap: 20px 32px; }
figure { margin: 0; min-width: 0; }
figcaption { font-weight: 600; }
/* Values of many runs need more lines, which lie over the figure instead of moving it. */
output { display: block; height: 1.6em; position: relative; z-index: 1; pointer-events: none; color: var(--soft); font-size: .85rem;
  font-variant-numeric: tabular-nums; }
output span { display: block; background: var(--page); }
output b { font-weight: 600; margin-left: 12px; display: inline-block; } output i { width: 22px; margin-right: 5px; }
output em { font-style: normal; color: color-mix(in srgb, currentColor 70%, var(--ink)); }
.plot { display: block; width: 100%; height: auto; overflow: visible; }
.plot:focus:not(:focus-visible) { outline: none; }
.scripted .plot { touch-action: pan-y; cursor: crosshair; user-select: none; -webkit-user-select: none; }
.selection { fill: currentColor; opacity: .12; }
.plot text { fill: var(--soft); font-size: 13px; font-variant-numeric: tabular-nums; }
.plot .tick.y { text-anchor: end; } .plot .tick.x, .plot .label.x, .plot .empty { text-anchor: middle; }
/* Words need more contrast than lines do. */
.plot .end { font-weight: 600; fill: currentColor; fill: color-mix(in srgb, currentColor 70%, var(--ink)); }
.grid { stroke: var(--rule); } .axis { stroke: var(--axis); } .cursor { stroke: var(--axis); visibility: hidden; }
path { fill: none; stroke: currentColor; stroke-linejoin: round; stroke-linecap: round; vector-effect: non-scaling-stroke; }
/* Under a curve that coincides, the wider one still shows. */
.line { stroke-width: 3.4px; } .line.r0.d0 { stroke-width: 2px; } .band { fill: currentColor; opacity: .18; } .band.noise { opacity: .1; }
.band.one { stroke: currentColor; stroke-width: 3.4px; opacity: .4; }
.r0 { color: var(--r0); } .r1 { color: var(--r1); } .r2 { color: var(--r2); } .r3 { color: var(--r3); }
.r4 { color: var(--r4); } .r5 { color: var(--r5); } .r6 { color: var(--r6); }
/* Of more than seven runs: thin, as there are many. */
main:has(.legend li:nth-child(8)) .line { stroke-width: 2px; }
.line.d1 { stroke-dasharray: 6 5; } .line.d2 { stroke-dasharray: .1 4.5; } .line.d3 { stroke-dasharray: 9 5 .1 5; }
/* A shade at the edge behind which there are more columns: what scrolls with the table covers it where there are none. */
.study td { white-space: nowrap; }
.wide { overflow-x: auto; background: linear-gradient(to right, var(--page) 50%, transparent) left / 48px 100% no-repeat local,
  linear-gradient(to left, var(--page) 50%, transparent) right / 48px 100% no-repeat local,
  linear-gradient(to right, var(--shade), transparent) left / 16px 100% no-repeat scroll,
  linear-gradient(to left, var(--shade), transparent) right / 16px 100% no-repeat scroll; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 5px 20px 5px 0; border-bottom: 1px solid var(--rule); text-align: left; vertical-align: top; }
.results td, .results thead th { text-align: right; padding: 5px 0 5px 24px; }
thead th { min-width: 7em; } .configs thead i { margin-left: 0; }
tbody th { font-weight: 400; color: var(--soft); position: sticky; left: 0; background: var(--page); }
.results tbody th { min-width: 13em; }
.configs td { font-family: ui-monospace, monospace; font-size: .85rem; overflow-wrap: anywhere; }
.note { color: var(--soft); font-size: .85rem; }
pre { overflow-x: auto; font-size: .8rem; } details { margin: .4em 0; } summary { cursor: pointer; color: var(--soft); overflow-wrap: anywhere; }
@media (max-width: 640px) { main { padding: 16px 14px 40px; } .plot text { font-size: 17px; } .plot text.end { font-size: 15px; }
  .results tbody th { min-width: 0; max-width: 8.5em; } .results td, thead th { overflow-wrap: anywhere; min-width: 6.8em; }
  .results td, .results thead th { padding-left: 14px; }
  .configs tbody th { position: static; max-width: 9em; overflow-wrap: anywhere; } }
@media print { label, .controls, #how { display: none; } i { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  figure { break-inside: avoid; } .wide { overflow: visible; background: none; } table { font-size: .75rem; }
  th, td { padding-right: 10px; overflow-wrap: anywhere; } .results td, .results thead th { padding-left: 8px; } .study td { white-space: normal; }
  thead th { min-width: 4em; } .results tbody th { min-width: 8em; } tbody th { position: static; overflow-wrap: normal; } }
)css";

const char* const kReportScript =
#include "tools/report/report_script.inc"
    ;

}  // namespace dgc
