"use strict";
// The picture of a sizing: slowdown against size of the fast tier, with intervals, budget and recommended
// sizes.

// Returns a policy's curve, its interval as a band, its recommended size and its knee.
function sizedLines(data, sized, index) {
  const style = policyStyle(data, index);
  const points = (part) => sized.curve.map((point) => ({ x: point.fast_bytes / data.footprint, y: point[part] - 1 }));
  const curve = { name: sized.policy, points: points("slowdown"), ...style };
  if (sized.bound) return [curve];
  const base = points("low").map((point) => point.y);
  const band = { name: sized.policy, points: points("high"), base, colour: style.colour, faint: true, unnamed: true, untold: true };
  const marked = (place, what, more) => ({
    name: `${sized.policy}, ${what}`,
    points: [{ x: place.fast_bytes / data.footprint, y: place.slowdown - 1 }],
    colour: style.colour,
    unnamed: true,
    ...more,
  });
  const found = sized.recommended && { marks: 7, hollow: sized.outcome !== "confirmed" };
  return [
    band,
    { ...curve, marks: 2.5 },
    ...(sized.recommended ? [marked(sized.recommended, "recommended", found)] : []),
    ...(sized.knee ? [marked(sized.knee, "knee", { marks: 5, mark: 2 })] : []),
  ];
}

{
  const data = JSON.parse(byId("data").textContent);
  const figure = byId("size");
  const places = data.sized.flatMap((sized) => sized.curve.map((point) => point.fast_bytes / data.footprint));
  const least = Math.min(...places) * 0.92;
  const rules = [{ y: data.budget, name: "budget", colour: "var(--alarm)", dash: "9 4" }];
  if (!data.policies.includes("all-slow")) {
    rules.push({ y: data.all_slow - 1, name: "all-slow", colour: "var(--bound)", dash: boundDashes["all-slow"] });
  }
  const fraction = (value) => (value < 1 ? `1/${Math.round(1 / value)}` : "all");
  const spec = {
    x: {
      title: "fast tier, as a share of the footprint",
      log: true,
      lines: 2,
      min: least,
      max: 1.08,
      ticks: Array.from({ length: 10 }, (_, step) => 2 ** (step - 9)).filter((value) => value >= least),
      format: (value) => [fraction(value), bytes(value * data.footprint)],
    },
    y: { title: "slowdown against all memory fast", zero: true, format: (value) => percent(value, 0), tell: (value) => percent(value) },
    lines: data.sized.flatMap((sized, index) => sizedLines(data, sized, index)),
    rules,
    when: (value) => `${bytes(value * data.footprint)} fast`,
  };
  if (places.length) plot(figure, spec);
  else markEmpty(figure, "Nothing was sized.");
}
