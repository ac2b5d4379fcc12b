/** Rows of real files as the bodies that loading them would put: JSON lines as they are, CSV as text. */
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { parse } from 'csv-parse/sync'
import type { Json } from '../../src/cells/body.ts'
import { BenchError, readReason } from '../common.ts'

export interface DataSet {
  readonly name: string
  readonly rows: readonly Json[]
}

export async function readDataSet(path: string, rowsMax: number): Promise<DataSet> {
  const bytes = await readFile(path).catch((error: unknown) => {
    throw new BenchError(`${path} cannot be read: ${readReason(error)}`)
  })
  const text = (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8')
  const name = basename(path).replace(/\.gz$/, '')
  const rows = name.endsWith('.csv') ? csvRows(text, rowsMax) : jsonRows(text, rowsMax)
  if (rows.length === 0) throw new BenchError(`${path} has no rows`)
  return { name, rows }
}

function csvRows(text: string, rowsMax: number): readonly Json[] {
  const rows: Record<string, string>[] = parse(text, { columns: true, to: rowsMax })
  return rows
}

function jsonRows(text: string, rowsMax: number): readonly Json[] {
  const lines = text.split('\n', rowsMax).filter((line) => line !== '')
  return lines.map((line) => {
    const row: Json = JSON.parse(line)
    return row
  })
}
