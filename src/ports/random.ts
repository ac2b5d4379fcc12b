/** Randomness: seeded in the simulator, the system's in a daemon. Never used in the pure core. */
export interface Random {
  /** A whole number, `from` and `to` included; both are safe integers with `from <= to`. */
  int(from: number, to: number): number
  /** `count` unpredictable bytes. */
  bytes(count: number): Uint8Array
}

/** A random UUID (version 4). */
export function randomUuid(random: Random): string {
  const bytes = Buffer.from(random.bytes(16))
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    hex.slice(12, 16),
    hex.slice(16, 20),
    hex.slice(20),
  ].join('-')
}
