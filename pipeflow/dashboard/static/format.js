// How numbers and times are written.

/** A number with three significant digits, in thousands where it is large. */
export function number(value) {
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6) return `${digits(value / 1e6)} M`;
  if (size >= 1e4) return `${digits(value / 1e3)} k`;
  if (size >= 100) return value.toFixed(0);
  if (size < 1e-3) return value.toExponential(1);
  return digits(value);
}

function digits(value) {
  return String(Number(value.toPrecision(3)));
}

/** A whole number with separators. */
export function count(value) {
  return value.toLocaleString("en-US");
}

/** A share between 0 and 1 as a percentage. */
export function share(value) {
  return `${Math.round(100 * value)} %`;
}

/** Seconds as h:mm:ss. */
export function duration(seconds) {
  const whole = Math.floor(seconds);
  const two = (part) => String(part).padStart(2, "0");
  return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
}

/** The time of day of so many seconds since 1970. */
export function timeOfDay(seconds) {
  return new Date(1000 * seconds).toLocaleTimeString("en-GB");
}
