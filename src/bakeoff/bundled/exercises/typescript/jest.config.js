export default {
  testEnvironment: 'node',
  testMatch: ['**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/', '/\\.meta/'],
  transform: { '\\.[jt]sx?$': 'babel-jest' },
}
