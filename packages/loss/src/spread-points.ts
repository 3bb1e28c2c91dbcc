/**
 * `count` points that fill the unit cube of `dimensions` evenly, the same ones each time: multiples of the square roots of
 * primes, of which only the fractions are kept (a Kronecker sequence). Better than random ones for means over few dimensions.
 */
export function spreadPoints(dimensions: number, count: number): readonly (readonly number[])[] {
  const steps = firstPrimes(dimensions).map((prime) => Math.sqrt(prime) % 1);
  return Array.from({ length: count }, (_, index) => steps.map((step) => ((index + 0.5) * step) % 1));
}

function firstPrimes(count: number): readonly number[] {
  const primes: number[] = [];
  for (let candidate = 2; primes.length < count; candidate += 1) {
    if (primes.every((prime) => candidate % prime !== 0)) primes.push(candidate);
  }
  return primes;
}
