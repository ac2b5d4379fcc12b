/** Name-based UUIDs (RFC 9562, version 5): the same names give the same row key on every run. */
import { createHash } from 'node:crypto'

/** Names under which the loader makes row keys; changing it would double every loaded data set. */
export const loaderNamespace = '5b7ad5f2-5a0c-4d6c-9f0e-6f1d3c1f7a42'

export function uuidV5(namespace: string, name: string): string {
  const hash = createHash('sha1')
  hash.update(Buffer.from(namespace.replaceAll('-', ''), 'hex'))
  const bytes = hash.update(name, 'utf8').digest().subarray(0, 16)
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x50
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  const cuts = [0, 8, 12, 16, 20, 32]
  return cuts
    .slice(1)
    .map((end, i) => hex.slice(cuts[i], end))
    .join('-')
}

/** The name of a row in its data set: its key value, or its line where it has none. */
export type RowName =
  { readonly kind: 'key'; readonly key: string } | { readonly kind: 'line'; readonly line: number }

export function makeRowKey(dataset: string, name: RowName): string {
  const text = name.kind === 'key' ? `key:${name.key}` : `line:${name.line}`
  return uuidV5(uuidV5(loaderNamespace, dataset), text)
}
