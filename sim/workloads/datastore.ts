/** The datastore of the clients' cells. */
export const datastore = 'simulation'
