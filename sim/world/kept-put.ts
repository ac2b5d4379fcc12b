/** Puts that wait in the memory of a simulated disk. */
import { latin1 } from '../../src/base/bytes.ts'
import type { Put } from '../../src/ports/storage.ts'

/** A put that the disk owns and no caller changes. */
export interface KeptPut extends Put {
  /** The key as text. */
  readonly name: string
}

/** `kept`: the part of the last value that is left, in parts per million. */
export function shortened(puts: readonly KeptPut[], kept: number): KeptPut[] {
  return puts.map((put, index) => {
    const { name, key, value } = put
    if (value === undefined || index < puts.length - 1) return put
    return { name, key, value: value.subarray(0, Math.floor((value.length * kept) / 1_000_000)) }
  })
}

export function keptPut({ key, value }: Put): KeptPut {
  const name = latin1(key)
  if (value === undefined) return { name, key: Buffer.from(key) }
  return { name, key: Buffer.from(key), value: Buffer.from(value) }
}
