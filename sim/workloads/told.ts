/** How a client of a workload takes what a call fails with. */
import type { Schema } from '../../schema/model.ts'
import { StoreError, type StoreErrorCode } from '../../src/base/errors.ts'
import type { Client } from '../../src/client/client.ts'

export interface Excuses {
  /** Codes that are never to be tried again, and are no fault of the store's. */
  readonly codes: readonly StoreErrorCode[]
  /** Whether a node may have a damaged data disk now, and say so. */
  mayBeCorrupt(): boolean
  /** The call failed for a reason that the world gave. */
  onFailed(code: StoreErrorCode): Promise<void> | void
}

/** Undefined when the call failed for what the world did to it; rejects with any other error. */
export async function toldBy<Value>(
  call: () => Promise<Value>,
  { codes, mayBeCorrupt, onFailed }: Excuses,
): Promise<Value | undefined> {
  try {
    return await call()
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    const { code, retry } = error
    const isDamage = code === 'corrupt' && mayBeCorrupt()
    if (retry === 'never' && !codes.includes(code) && !isDamage) throw error
    await onFailed(code)
    return undefined
  }
}

/**
 * Another session may have applied the next version meanwhile; then this session opens that one.
 */
export async function applied(client: Client, schema: Schema): Promise<void> {
  try {
    await client.applySchema(schema)
  } catch (error) {
    if (!(error instanceof StoreError) || error.code !== 'schema-mismatch') throw error
  }
}
