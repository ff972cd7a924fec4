// What every suite finds loaded.
import '@testing-library/jest-dom/vitest';
