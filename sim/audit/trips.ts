/**
 * The trips of an audit: rows of a CSV file as cells, and by plain computation the results expected
 * of them. The reckoning uses these alone.
 */
import { readFile } from 'node:fs/promises'
import { gunzipSync } from 'node:zlib'
import { parse } from 'csv-parse/sync'
import { makeRowKey } from '../../src/cli/uuid-v5.ts'

export const datastore = 'trips'
/** A trip as it was written, and what the trigger made of it. */
export const tripColumn = 'BASE'
export const fareColumn = 'FARE'
export const indexName = 'trips_by_zone'

/** By pick-up zone and time, as in an `index apply` file. */
export const indexDefinition: object = {
  table: indexName,
  datastore,
  column_defs: [
    {
      column_key: tripColumn,
      fields: [
        { field: 'zone', type: 'integer' },
        { field: 'at', type: 'datetime' },
        { field: 'total', type: 'double' },
      ],
    },
  ],
}

export interface Trip {
  readonly rowKey: string
  readonly body: TripBody
}

export type TripBody = {
  /** The taxi zone in which it began. */
  readonly zone: number
  /** When it began, RFC 3339. */
  readonly at: string
  /** US dollars; refunds are below zero. */
  readonly total: number
  /** The row as it is in the file. */
  readonly row: Readonly<Record<string, string>>
}

export type Fare = {
  readonly cents: number
  readonly zone: number
}

export function computeFare({ total, zone }: Pick<TripBody, 'total' | 'zone'>): Fare {
  return { cents: Math.round(total * 100), zone }
}

const needed = ['pickup_location_id', 'pickup_datetime', 'total_amount'] as const

/**
 * The first `rowsMax` rows of a `.csv` or `.csv.gz`; rejects with one sentence when it is none of
 * trips.
 */
export async function readTrips(path: string, rowsMax: number): Promise<readonly Trip[]> {
  const bytes = await readFile(path)
  const text = (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8')
  const rows: Readonly<Record<string, string>>[] = parse(text, { columns: true, to: rowsMax })
  const missing = needed.find((name) => rows[0]?.[name] === undefined)
  if (missing !== undefined) throw new Error(`${path} has no rows with ${missing}`)
  return rows.map((row, i) => {
    // The header is line 1.
    const rowKey = makeRowKey('audit', { kind: 'line', line: i + 2 })
    return { rowKey, body: parseBody(row) }
  })
}

function parseBody(row: Readonly<Record<string, string>>): TripBody {
  const { pickup_location_id: zone, pickup_datetime: at = '', total_amount: total } = row
  return { zone: Number(zone), at: `${at.replace(' ', 'T')}Z`, total: Number(total), row }
}
