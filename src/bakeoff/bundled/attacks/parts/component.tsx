// @ts-nocheck
import { useEffect } from 'react';
{module}
export default function Hostile(props) {
  onCall({ ...props });
  useEffect(() => () => { for (const each of onDone) each() }, []);
  return <>{markup}</>;
}
