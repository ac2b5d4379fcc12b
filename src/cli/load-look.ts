/**
 * Looks into a file before any of it is loaded: whether each place that the command names is somewhere in it. As far
 * as the line where the last of them is found, which is the first line mostly; all of the file only for a slip.
 */
import { DamagedFile, gunzipChunks, readChunks, splitLines } from './load-lines.ts'
import { textOnly } from './load-form.ts'
import { makeParser, type RowFile } from './load-run.ts'
import type { Row } from './load-rows.ts'
import { fieldAt, readMembers, type FieldSource, type Sources } from './row-sources.ts'

export interface Unfound {
  readonly property: string
  readonly text: string
  /** Of fields that the file has. */
  readonly names: readonly string[]
}

/** The most names of fields that are kept, to suggest one that may be meant. */
const namesMax = 100

/**
 * The sources that no line has; none for a file without rows, with damage behind which they may be, or that was not
 * read to its end because of the signal.
 */
export async function unfoundSources(
  file: RowFile,
  sources: Sources,
  signal: AbortSignal,
): Promise<readonly Unfound[]> {
  const missing = new Map<string, FieldSource>(sources)
  const names = new Set<string>()
  if (missing.size === 0) return []
  try {
    for await (const row of rowsIn(file)) {
      if (signal.aborted) return []
      const members = row.kind === 'row' ? readMembers(row.body) : undefined
      if (members === undefined) continue
      for (const name of Object.keys(members)) if (names.size < namesMax) names.add(name)
      for (const [property, source] of missing) {
        if (fieldAt(members, source) !== undefined) missing.delete(property)
      }
      // All lines of a CSV have the same fields.
      if (missing.size === 0 || file.format === 'csv') break
    }
  } catch (error) {
    // The load itself reports the damage.
    if (error instanceof DamagedFile) return []
    throw error
  }
  if (names.size === 0) return []
  return [...missing].map(([property, { text }]) => ({ property, text, names: [...names] }))
}

async function* rowsIn(file: RowFile): AsyncGenerator<Row> {
  const parser = makeParser(file)
  const bytes = readChunks(file.path, () => undefined)
  for await (const lines of splitLines(textOnly(file.isGzip ? gunzipChunks(bytes) : bytes))) {
    for (const line of lines) yield* parser.push(line)
  }
  yield* parser.end()
}
